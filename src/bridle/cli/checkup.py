"""Check what is set up on this machine, and which model would be used.

Changes nothing, and never shows an API key.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from errno import ENOSPC
from pathlib import Path
from typing import NamedTuple

import click

from bridle import __version__
from bridle.cli import installation
from bridle.cli.exit_codes import FAILED
from bridle.cli.style import Paint, paint_for
from bridle.config.folder import load_diagnostics, load_hooks, load_skills
from bridle.config.loader import load_settings
from bridle.config.paths import config_file, state_folder
from bridle.config.settings import KEY_VARIABLES, LoadedSettings, Settings
from bridle.errors import AgentError, ConfigError, MissingModel
from bridle.protocols.provider import ProviderInfo
from bridle.providers.catalogue import models as catalogue_models
from bridle.runtime import Choice, find_provider, providers
from bridle.runtime.agents import agent_statuses, check_agent, check_ready
from bridle.tools.grep import find_ripgrep
from bridle.workspace import bubblewrap
from bridle.workspace.programs import working_folder
from bridle.workspace.sandbox import VARIABLE, probe
from bridle.workspace.text import flat


class Finding(NamedTuple):
    """One line of the report. `good` is None if it is neither good nor bad."""

    topic: str
    found: str
    good: bool | None = None
    advice: str = ""


def finding_lines(finding: Finding, paint: Paint, width: int) -> Iterator[str]:
    """Yield a finding as lines; topics take so many columns."""
    mark = {True: paint.green("✓"), False: paint.red("✗"), None: paint.dim("·")}[finding.good]
    yield f"{mark} {paint.bold(finding.topic.ljust(width))} {flat(finding.found)}"
    if finding.advice:
        yield f"  {'':{width}} → {flat(finding.advice)}"


def report_lines(started: Settings | None = None) -> tuple[str, ...]:
    """Return all findings as plain lines, for somebody who is in a session.

    The session may use another model than the one that is found here. `started` are the settings
    that a server was started with.
    """
    found = [
        one._replace(topic="default model") if one.topic == "model" else one
        for one in examine(started)
    ]
    width = max(len(one.topic) for one in found)
    return tuple(line for one in found for line in finding_lines(one, Paint(False), width))


def examine(started: Settings | None = None) -> Iterator[Finding]:
    """Yield all findings, the model last."""
    yield _package()
    yield Finding("python", f"{platform.python_version()} at {sys.executable}", True)
    loaded, finding = _settings()
    yield finding
    for warning in loaded.warnings if loaded else ():
        yield Finding("settings", warning, False)
    yield from _keys()
    yield _state()
    yield _program("git", shutil.which("git"), "needed only in git repositories")
    yield _program("ripgrep", find_ripgrep(working_folder()), "searches work, but are slower")
    yield _sandbox()
    yield from _hooks()
    settings = started or (loaded.settings if loaded else Settings())
    yield from _diagnostics(settings)
    yield from _skills()
    yield from _agents(settings.agent)
    yield from _model(settings)


def _package() -> Finding:
    if damaged := installation.damage():
        return Finding("bridle", f"{__version__}: {damaged}", False, installation.REPAIR)
    return Finding("bridle", __version__, True)


def _settings() -> tuple[LoadedSettings | None, Finding]:
    file = config_file(os.environ)
    try:
        loaded = load_settings()
    except ConfigError as error:
        return None, Finding("settings", error.message, False, error.hint)
    where = str(file) if file.exists() else f"no settings file; it would be {file}"
    return loaded, Finding("settings", where, True)


def _keys() -> Iterator[Finding]:
    for variable in dict.fromkeys(("BRIDLE_API_KEY", *KEY_VARIABLES.values())):
        is_set = bool(os.environ.get(variable, "").strip())
        yield Finding(variable, "set" if is_set else "not set", is_set or None)


def _state() -> Finding:
    folder = state_folder(os.environ)
    nearest = next(one for one in (folder, *folder.parents) if one.exists())
    try:
        if nearest == folder:
            with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
                file.write(b"x")  # an empty file fits on a disk that is full
        elif not os.access(nearest, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        full = error.errno == ENOSPC
        advice = f"{'Free some space there' if full else 'Make it writable'}, or set BRIDLE_STATE."
        return Finding("state folder", f"{folder}: {error.strerror}", False, advice)
    return Finding("state folder", f"{folder} is writable", True)


def _program(topic: str, path: str | None, without: str) -> Finding:
    if path is None:
        return Finding(topic, f"not found; {without}")
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5)
        said = (done.stdout.splitlines() or [""])[0]
    except (OSError, subprocess.TimeoutExpired):
        said = "(its version is not known)"
    return Finding(topic, f"{said} at {path}", True)


def _sandbox() -> Finding:
    """Return the sandbox that commands run in, and why not a stronger one."""

    try:
        level, why = probe(os.environ.get(VARIABLE, ""))
    except ConfigError as error:
        return Finding("sandbox", error.message, False, error.hint)
    advice = ""
    if level == "none":
        advice = (
            "Commands run with all your rights: a script can read credentials and write anywhere. "
            "A command that bridle does not understand always needs approval."
        )
    elif level == "landlock" and not bubblewrap.program():
        advice = "If bubblewrap (bwrap) is installed, commands cannot see other processes, either."
    return Finding("sandbox", f"{level}: {why}", level != "none" or None, advice)


def _hooks() -> Iterator[Finding]:
    """Yield the hooks that run in the current folder."""
    try:
        found = load_hooks(Path()).items
    except ConfigError as error:
        yield Finding("hooks", error.message, False, error.hint)
        return
    for one in found:
        yield Finding("hook", f"{one.summary} ({one.origin})", True)


def _diagnostics(settings: Settings) -> Iterator[Finding]:
    """Yield the checks that run on changed files in the current folder."""
    try:
        found = load_diagnostics(Path(), settings.diagnostics)
    except ConfigError as error:
        yield Finding("diagnostics", error.message, False, error.hint)
        return
    for one in found.items:
        files = "" if one.patterns == ("*",) else f" for {', '.join(one.patterns)}"
        yield Finding("diagnostics", f"{' '.join(one.words)}{files} ({one.origin})", True)
    for said, hint in found.notes:
        yield Finding("diagnostics", said, None, hint)


def _skills() -> Iterator[Finding]:
    """Yield the skills of the current folder, and why others cannot be used."""
    try:
        found = load_skills(Path())
    except ConfigError as error:
        yield Finding("skills", error.message, False, error.hint)
        return
    for one in found.items:
        yield Finding("skill", f"{one.name} ({one.root}/{one.folder})", True)
    for said, hint in found.notes:
        yield Finding("skill", said, None, hint)


def _agents(chosen: str) -> Iterator[Finding]:
    """Yield the agents. One that is not installed is no problem, unless it was chosen."""
    if chosen:
        try:
            check_ready(check_agent(chosen), *working_folder())
        except ConfigError as error:
            yield Finding("agent", error.message, False, error.hint)
    for one in agent_statuses():
        yield Finding("agent", f"{one.name}: {one.found}", one.good or None, one.lacks)


def _model(settings: Settings) -> Iterator[Finding]:
    servers = providers.local_servers()
    said = ", ".join(f"{name} at {url} with {model}" for name, url, model in servers)
    yield Finding("local servers", said or "none is running", bool(servers) or None)
    choice = find_provider(settings, probe=lambda: servers)
    for step in choice.considered:
        yield Finding("considered", f"{step.place}: {step.found}", advice=step.lacks)
    yield _usable(choice)
    yield from _catalogue(choice)


def _usable(choice: Choice) -> Finding:
    try:
        choice.provider()
    except MissingModel as error:
        return Finding("model", error.message, None, error.hint)
    except AgentError as error:
        return Finding("model", f"{choice.name}: {error.message}", False, error.hint)
    good = None if choice.name == "offline" else True
    return Finding("model", f"{choice.name}: {choice.why}", good)


def _catalogue(choice: Choice) -> Iterator[Finding]:
    vendor, _, model = choice.name.partition("/")
    if model:
        from bridle.providers.catalogue import lookup

        yield Finding("catalogue", _facts(lookup(vendor, model)))


def known_models() -> Iterator[Finding]:
    """Yield the models of the catalogue. Others can be used, too; less is known about them."""
    for info in catalogue_models():
        yield Finding(f"{info.name}/{info.model}", _facts(info))


def _facts(info: ProviderInfo) -> str:
    price = info.price
    window = f"{info.context_window:,} tokens" if info.context_window else "unknown"
    costs = f"${price.input:g} in, ${price.output:g} out per million" if price else "unknown"
    return f"context window {window} · price {costs}"


def print_checkup(*, models: bool, as_json: bool) -> int:
    """Print the findings, or the models of the catalogue, and return the exit code."""
    findings = list(known_models() if models else examine())
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings], indent=1))
    else:
        paint, width = paint_for(sys.stdout), max(len(finding.topic) for finding in findings)
        for finding in findings:
            click.echo("\n".join(finding_lines(finding, paint, width)))
    return FAILED if any(finding.good is False for finding in findings) else 0
