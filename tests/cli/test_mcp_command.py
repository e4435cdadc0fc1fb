"""`bridle mcp`: servers are set up, shown, tried, taken out; a run starts none without need."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bridle.config.mcp import ServerSettings, add_server

RAW = str(Path(__file__).parent.parent / "mcp" / "raw_server.py")


def config_of(bridle):
    return bridle.home / ".config" / "bridle" / "config.yaml"


def words(mode, notes=""):
    return [sys.executable, "-S", RAW, mode, str(notes)]


def written(bridle, servers):
    """The person's settings with these servers, each in its mode; one that hangs is not awaited."""
    path = config_of(bridle)
    path.parent.mkdir(parents=True, exist_ok=True)
    notes = bridle.home / "notes"
    lines = [
        f"    {name}: {{command: {json.dumps(words(mode, notes))}, "
        f"timeout: {1 if mode == 'hang' else 20}}}"
        for name, mode in servers.items()
    ]
    path.write_text("\n".join(["mcp:", "  servers:", *lines, ""]))
    return notes


def test_a_server_is_added_listed_tested_and_removed(bridle):
    added = bridle.run("mcp", "add", "fine", "--", *words("fine"))
    assert added.returncode == 0, added.stderr
    assert "mcp__fine__echo  says it again" in added.stdout
    listed = json.loads(bridle.run("mcp", "list", "--json").stdout)
    assert [(one["name"], one["state"], one["tools"]) for one in listed] == [
        ("fine", "2 tools", ["echo", "spawn"])
    ]
    removed = bridle.run("mcp", "remove", "fine")
    assert removed.returncode == 0
    assert "No MCP server is set up." in bridle.run("mcp", "list").stdout
    assert list((bridle.state / "mcp").iterdir()) == []
    gone = bridle.run("mcp", "remove", "fine")
    assert gone.returncode != 0 and "there is no MCP server 'fine'" in gone.stderr


def test_adding_a_server_without_the_package_that_it_needs_says_what_to_install(bridle):
    code = (
        "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None\n"
        "from bridle.cli import main; sys.exit(main(['mcp', 'add', 'fine', '--', 'true']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=bridle.environ, timeout=60
    )
    assert done.returncode == 1 and not config_of(bridle).exists()
    assert done.stderr == (
        "bridle: MCP servers need the package `mcp`, which is not installed\n"
        "  → Install it with: pip install 'bridle-agent[mcp]'\n"
        "bridle: fine was not set up\n"
        "  → Fix the problem, or save it anyway with --no-test.\n"
    )


def test_a_server_that_does_not_work_is_not_set_up_and_says_why(bridle):
    failed = bridle.run("mcp", "add", "dead", "--timeout", "1", "--", *words("hang"))
    assert failed.returncode == 1
    assert "dead cannot be reached: it did not start within 1 second." in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not config_of(bridle).exists()


def test_a_list_starts_nothing_and_a_check_says_which_works(bridle):
    notes = written(bridle, {"fine": "fine", "slow": "hang"})
    listed = bridle.run("mcp", "list")
    assert listed.stdout.count("never connected") == 2
    assert not notes.exists()
    checked = bridle.run("mcp", "list", "--check")
    assert checked.returncode == 1
    lines = checked.stdout.splitlines()
    assert lines[0].startswith("fine  2 tools")
    assert lines[1].startswith("slow  cannot be used: it did not start within 1 second")


def test_a_run_with_ten_servers_starts_none_before_it_needs_one(bridle):
    hanging = {f"h{number}": "hang" for number in range(2)}
    notes = written(bridle, {f"s{number}": "fine" for number in range(8)} | hanging)
    quiet = bridle.run("run", "hi", "--model", bridle.script("hello"))
    assert (quiet.returncode, quiet.stdout.strip()) == (0, "hello")
    assert not notes.exists()
    look = {"calls": [{"name": "mcp", "arguments": {"action": "tools", "server": "s3"}}]}
    use = {"calls": [{"name": "mcp__s3__echo", "arguments": {"text": "hi"}}]}
    done = bridle.run("run", "hi", "--yes", "--model", bridle.script(look, use, "done"))
    assert done.returncode == 0, done.stderr
    assert sum("started" in line for line in notes.read_text().splitlines()) == 1
    assert "echo: hi" in bridle.logs()[-1].read_text()


def test_a_run_does_not_load_the_sdk_for_what_is_only_set_up(bridle):
    import subprocess

    written(bridle, {"fine": "fine"})
    model = bridle.script("hello")
    code = (
        "import sys; from bridle.cli import main; main(sys.argv[1:]); "
        "sys.exit(any(name.split('.')[0] in ('mcp', 'pydantic', 'anyio') for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "hi", "--model", model],
        cwd=bridle.workspace,
        env=bridle.environ,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "hello"), done.stderr


def test_settings_that_are_wrong_are_named_with_their_line(bridle):
    path = config_of(bridle)
    path.parent.mkdir(parents=True)
    path.write_text("mcp:\n  servers:\n    one: {command: npx}\n")
    for arguments in (["mcp", "list"], ["run", "hi", "--model", "offline"]):
        done = bridle.run(*arguments)
        assert done.returncode != 0
        assert f"{path}:3: `command` has to be a list of words" in done.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# mine\nmodel: x\nmcp:\n  servers: {}\nmode: ask\n", "# mine\nmodel: x\n{}mode: ask\n"),
        ("mcp:\n", "{}"),
        ("mcp: {}\nmode: ask\n", "{}mode: ask\n"),
        ("mcp: ~\n", "{}"),
        ("mcp: {servers: {\n  }}\nmode: ask\n", "{}mode: ask\n"),
        ("{}\n", "{}"),
    ],
)
def test_a_server_finds_its_place_where_the_settings_say_there_is_none(tmp_path, before, after):
    path = tmp_path / "config.yaml"
    path.write_text(before)
    add_server(path, ServerSettings("new", command=("ls", "-l")))
    new = 'mcp:\n  servers:\n    new:\n      command: ["ls", "-l"]\n'
    assert path.read_text() == after.replace("{}", new)


def test_what_was_accepted_is_said(bridle):
    flags = ("mcp", "test", "one", "--accept")
    written(bridle, {"one": "fine"})
    assert (
        bridle.run(*flags).stdout.splitlines()[-1] == "accepted the tools of one: new: echo, spawn"
    )
    same = "the tools of one have not changed since they were accepted"
    assert bridle.run(*flags).stdout.splitlines()[-1] == same
    (pins,) = (bridle.state / "mcp").iterdir()
    known = json.loads(pins.read_text())
    echo, spawn = known["tools"]
    known["tools"] = [echo | {"description": "something else"}, spawn | {"name": "away"}]
    pins.write_text(json.dumps(known))
    said = bridle.run(*flags).stdout.splitlines()[-1]
    assert said == "accepted the tools of one: new: spawn; changed: echo; removed: away"
