"""What the documents say is run: every example, every command of the README, every link."""

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE
from functools import cache
from pathlib import Path

import click
import pytest

import bridle
from bridle.agents.base import AgentResponse
from bridle.cli.main import COMMANDS, commands
from bridle.config.loader import load_settings
from bridle.engine.history import History
from bridle.runtime import EngineOptions
from bridle.runtime.providers import ProviderOptions
from bridle.testing import KEY, FakeAnthropic
from bridle.testing.agents import acts_for
from nursery import begun

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAID = {
    "add_a_tool.py": "Yes: there are three saddles.\n",
    "add_a_provider.py": "HOLD YOUR HORSES \n",
    "cloud_models.py": "usage: cloud_models.py bedrock|vertex|azure\n",
    "own_agent.py": "asked about edit a.txt\nEdited. two\n",
    "serve_engine.py": "asked about order {'item': 'hay'}\nIt is ordered.\n",
    "streaming.py": (
        "[weather {'city': 'Lyon'}]\n[weather: fine in Lyon]\nNo umbrella today.\n"
        "done, 2 requests\n[weather: fine in Paris]\nNone in Paris either.\ndone\n"
    ),
    "telemetry.py": (
        "session: ok\n  invoke_agent bridle: ok\n"
        "    step: ok\n      chat scripted: ok\n      execute_tool weather: ok\n"
        "    step: ok\n      chat scripted: ok\n"
    ),
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_runs_and_says_what_it_should(example):
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, SAID[example.name], "")


def test_the_pages_show_the_examples_as_they_are():
    script = [sys.executable, str(ROOT / "scripts" / "sync-examples"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=240, check=False)
    assert done.stderr == ""


def test_every_link_between_the_pages_leads_somewhere():
    broken = [
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))
        if not target.startswith("http") and not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_readme_is_one_screen():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 60


def test_every_make_target_of_the_readme_exists():
    readme = (ROOT / "README.md").read_text("utf-8")
    wanted = set(re.findall(r"^make ([a-z]+)", readme, re.M))
    made = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert wanted
    assert wanted <= made


def fenced(page):
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def shown_commands():
    """Everything that the pages tell a reader to type, in a fence or in the text."""
    found = set()
    for page in PAGES:
        found |= set(re.findall(r"`(bridle [a-z][^`\n]*)`", page.read_text("utf-8")))
        for _, block in fenced(page):
            found |= set(re.findall(r"^(bridle [a-z][^\n#]*)", block, re.M))
    return sorted(line.strip() for line in found)


def all_commands():
    """Every command of the program, with those of its groups: ("policy", "check")."""
    context = click.Context(commands)
    for name in COMMANDS:
        found = commands.get_command(context, name)
        if isinstance(found, click.Group):
            yield from ((name, one) for one in found.list_commands(context))
        else:
            yield (name,)


def depth_of(words):
    """How many words name a command, through groups of groups."""
    context, group = click.Context(commands), commands
    for depth, word in enumerate(words):
        group = group.get_command(context, word)
        if not isinstance(group, click.Group):
            return depth + 1
        if not words[depth + 1 :] or words[depth + 1] not in group.list_commands(context):
            return depth + 1
    return len(words)


def test_the_reference_names_every_command():
    page = (ROOT / "docs" / "reference.md").read_text("utf-8")
    shown = {tuple(line.split()[1:3]) for line in shown_commands()}
    shown |= {words[:1] for words in shown}
    listed = re.findall(r"`bridle sessions rename`((?:, `[a-z]+`)+)", page)
    shown |= {("sessions", name) for name in re.findall(r"`([a-z]+)`", *listed)}
    assert [words for words in all_commands() if words not in shown] == []


@cache
def help_of(*words):
    """What a command says of itself; the pages show most of them more than once."""
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LANG": "C.UTF-8"}
    with begun(["bridle", *words, "--help"], environ, stdout=subprocess.PIPE) as process:
        said = process.stdout.read()
    assert process.returncode == 0
    return said.decode()


@pytest.mark.parametrize("line", shown_commands())
def test_every_command_in_the_pages_is_one_that_the_program_knows(line):
    words = shlex.split(line)[1:]
    said = help_of(*words[: depth_of(words)])
    flags = [word for word in words if word.startswith("--")]
    assert [flag for flag in flags if flag not in said] == []


def test_every_command_of_the_readme_runs(tmp_path):
    """With no key and no server, `offline` answers; the exit code is a good one."""
    environ = {**os.environ, "BRIDLE_MODEL": "offline", "BRIDLE_STATE": str(tmp_path / "state")}
    blocks = [block for _, block in fenced(ROOT / "README.md")]
    lines = [line for block in blocks for line in re.findall(r"^bridle [^\n#]+", block, re.M)]
    assert len(lines) >= 3
    for words in (*(shlex.split(line)[1:] for line in lines), ["stop", "--all"]):
        command = [sys.executable, "-m", "bridle", *words]
        if words[:1] in (["serve"], ["chat-server"]):
            code, said = served([*command, "--port", "0"], environ, tmp_path)
        else:
            done = subprocess.run(
                command, env=environ, cwd=tmp_path, capture_output=True, timeout=240, check=False
            )
            code, said = done.returncode, done.stdout
        assert code == 0, words
        assert said


def served(command, environ, folder):
    """A command that runs until somebody stops it: its exit code, and its first lines."""
    with subprocess.Popen(command, env=environ, cwd=folder, stdout=subprocess.PIPE) as process:
        said = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said += process.stdout.read()
    return process.returncode, said


async def readme_program(state, replies, key=KEY):
    """What the README's program says to a fake vendor that speaks the real wire; its requests."""
    [code] = [block for kind, block in fenced(ROOT / "README.md") if kind == "python"]
    async with FakeAnthropic(replies) as server:
        environ = {
            **os.environ,
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": key,
            "BRIDLE_STATE": str(state),
        }
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, env=environ, stdout=PIPE, stderr=PIPE
        )
        out, err = await program.communicate()
        return program.returncode, out.decode(), err.decode(), len(server.requests)


def test_the_program_of_the_readme_runs_against_a_vendor(tmp_path):
    """The code is the page's, word for word."""
    call = {"name": "weather", "arguments": {"city": "Lyon"}}
    replies = [{"calls": [call]}, {"text": "No."}]
    code, out, err, requests = asyncio.run(readme_program(tmp_path, replies))
    assert (code, err, requests) == (0, "", 2)
    assert out.startswith("No. ")


def test_the_program_of_the_readme_says_why_a_call_failed(tmp_path):
    refused = {"error": {"kind": "invalid", "status": 401, "message": "invalid x-api-key"}}
    code, out, err, _ = asyncio.run(readme_program(tmp_path, [refused], key="sk-ant-wrong-key"))
    assert (code, err) == (0, "")
    assert "401" in out


AGENTS = ROOT / "docs" / "guides" / "agents.md"


class Mine:
    """What a reader would put in its place: says what the script says."""

    def __init__(self, script):
        self.script = script

    async def execute(self, prompt, session, *, on_text_chunk, **_):
        for act in acts_for(self.script, prompt):
            await on_text_chunk(act.text)
        return AgentResponse("".join(act.text for act in acts_for(self.script, prompt)))

    async def cancel(self, session_id): ...
    async def shutdown(self): ...


def test_the_code_of_the_agents_guide_runs(tmp_path, monkeypatch):
    """(P8) Its blocks one after the other, as a reader would type them; then what they define."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path / "state"))
    names = {"__name__": "guide"}
    for block in [code for kind, code in fenced(AGENTS) if kind == "python"]:
        exec(compile(block, str(AGENTS), "exec"), names)

    async def story():
        async with bridle.build_engine(agent=names["Scribe"](), mode="edits") as engine:
            written = await engine.run("buy milk")
        async with bridle.build_engine(agent=names["Scribe"](), mode="plan") as engine:
            refused = await engine.run("no")
        async with bridle.build_engine(agent=names["loop"]) as engine:
            return written, refused, await engine.run("hi")

    written, refused, greeted = asyncio.run(story())
    assert (written.text, written.metrics.cost) == ("It is written down.", 0.001)
    assert (tmp_path / "notes.txt").read_text() == "buy milk"
    assert refused.text.startswith("I may not: ")
    assert greeted.text == "Hello."
    assert names["agent"].config.model == "opus"
    names["Mine"] = Mine
    names["TestMine"]().test_text_is_streamed()


def test_the_settings_of_the_agents_guide_are_settings(tmp_path):
    [text] = [code for kind, code in fenced(AGENTS) if kind == "yaml"]
    file = tmp_path / "config.yaml"
    file.write_text(text)
    settings = load_settings({}, {}, file).settings
    assert (settings.agent, settings.agent_env) == ("claude-code", ("MY_AGENT_TOKEN",))
    assert [json.loads(code) for kind, code in fenced(AGENTS) if kind == "json"]


def test_an_agent_of_ones_own_takes_about_fifteen_lines():
    """(P8)"""
    source = (ROOT / "examples" / "own_agent.py").read_text("utf-8")
    agent = source.partition("class Replacer:")[2].partition("async def yes")[0]
    lines = [line for line in agent.splitlines() if line.strip()]
    assert len(lines) <= 17


def test_the_reference_names_what_the_library_has():
    """Every option of `build_engine` and of `provider`, and names that a session's history has."""
    page = (ROOT / "docs" / "reference.md").read_text("utf-8")
    library = page.partition("## The library")[2].partition("```\n")[2].partition("```")[0]
    for call, options in (("build_engine", EngineOptions), ("provider", ProviderOptions)):
        listed = re.search(rf"^bridle\.{call}\(.*\n((?:    .*\n)+)", library, re.M)[1]
        listed = re.sub(r"\([^)]*\)", "", listed)
        assert set(re.findall(r"\w+", listed)) == set(options.__annotations__)
    history = re.search(r"^session\.history\.(.*)$", library, re.M)[1].split(" · ")
    assert [name for name in history if not hasattr(History(), name)] == []


def test_the_guides_link_each_page_of_theirs_once_under_next():
    page = (ROOT / "docs" / "concepts.md").read_text("utf-8").partition("## Next")[2]
    links = re.findall(r"\]\((guides/[^)#]+)\)", page)
    assert sorted(links) == sorted(set(links))
