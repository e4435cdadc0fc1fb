"""`bridle config`: the settings, where each comes from, and where the file is."""

import json
import os
import sys

import click
from msgspec.structs import replace

from bridle.cli.exit_codes import complain
from bridle.cli.style import cells, paint_for, plain
from bridle.config.loader import load_settings
from bridle.config.paths import config_file, hooks_file

DEFAULTS = {"limits.max_steps": 200}  # the engine's own, without its imports
_MAX_WIDTH = 48  # columns of a value


@click.group(name="config")
def command() -> None:
    """Show the settings and where each of them comes from."""


@command.command("path")
def path() -> None:
    """Print the path of the settings file, even if it does not exist yet."""
    click.echo(config_file(os.environ))


@command.command("show")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def show(as_json: bool) -> None:
    """Show the value and the origin of every setting. API keys are masked."""
    loaded = load_settings()
    hooks = _hooks()
    rows = [
        replace(row, value=DEFAULTS.get(row.key)) if row.value is None else row
        for row in loaded.rows()
    ]
    if as_json:
        settings = {row.key: {"value": row.value, "from": row.origin} for row in rows}
        click.echo(
            json.dumps({"file": str(loaded.file), "settings": settings, "hooks": hooks}, indent=2)
        )
        return
    paint = paint_for(sys.stdout)
    note = "" if loaded.file.exists() else " (does not exist)"
    click.echo(paint.dim(f"file: {loaded.file}{note}"))
    values = ["–" if row.value in ("", None) else plain(str(row.value)) for row in rows]
    key_width = max(len(row.key) for row in rows)
    value_width = min(_MAX_WIDTH, max(map(cells, values)))
    for row, value in zip(rows, values, strict=True):
        line = f"{row.key:{key_width}} {value}{' ' * (value_width - cells(value))}"
        line = paint.dim(line) if row.origin == "default" else line
        click.echo(f"{line} {paint.dim(row.origin)}")
    for hook in hooks:
        click.echo(f"{'hook':{key_width}} {plain(hook['does'])} {paint.dim(plain(hook['from']))}")
    for warning in loaded.warnings:
        complain(warning)


def _hooks() -> list[dict[str, str]]:
    """Return the hooks that run in the current folder. Raise `ConfigError`."""
    if not any(map(os.path.lexists, (str(hooks_file(os.environ)), ".bridle/hooks.yaml"))):
        return []
    from bridle.config.folder import load_hooks  # it reads YAML

    return [{"does": hook.summary, "from": hook.origin} for hook in load_hooks(".").items]
