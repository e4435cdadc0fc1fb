"""What people get wrong, and what goes wrong around them: one clear line, the right exit code."""

import socket
from pathlib import Path

import pytest
from cli_program import Program


def complaint(bridle: Program, *arguments: str | bytes, code: int, **more) -> str:
    done = bridle.run(*arguments, **more)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    first, *rest = done.stderr.splitlines()
    assert first.startswith("bridle: ")
    assert "Traceback" not in done.stderr
    assert not rest or rest[0].startswith("  → ")
    return "\n".join([first, *rest[:1]])


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [([""], None), (["  \n"], None), (["-"], b""), ([], b" \n"), ([], None)],
)
def test_an_empty_prompt_is_refused(bridle: Program, arguments, stdin):
    assert "the prompt is empty" in complaint(
        bridle, "run", *arguments, "-m", "offline", code=2, stdin=stdin
    )


def test_invalid_utf_8_is_said_where_it_is(bridle: Program):
    assert "the prompt is not valid UTF-8" in complaint(
        bridle, "run", b"caf\xe9", "-m", "offline", code=2
    )
    assert "standard input is not UTF-8 text (byte 3)" in complaint(
        bridle, "run", "-", "-m", "offline", code=2, stdin=b"caf\xe9"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "x", "-m", "nonsense/y"], "there is no provider for 'nonsense/y'"),
        (["run", "x", "-m", "ollama/"], "names no model"),
        (["run", "x", "-m", "scripted:none.json"], "none.json"),
        (["run", "x", "--mode", "yolo"], "invalid value for '--mode'"),
        (["run", "x", "--yes", "--mode", "plan"], "--yes means --mode auto"),
        (["run", "x", "--continue", "--resume", "y"], "cannot be combined"),
        (["run", "x", "--resume", "zzz", "-m", "offline"], "there is no session 'zzz'"),
        (["run", "x", "--resume", "", "-m", "offline"], "`bridle sessions list` prints them"),
        (["run", "x", "-m", "offline", "--resume"], "`bridle sessions list` prints them"),
        (["repl", "-m", "offline", "--resume"], "`bridle sessions list` prints them"),
        (["--resume"], "`bridle sessions list` prints them"),
        (["run", "x", "--continue", "--resume"], "cannot be combined"),
        (["run", "x", "--resume", "../x", "-m", "offline"], "there is no session '../x'"),
        (["run", "x", "--workspace", "/nonexistent"], "invalid value for '--workspace'"),
        (["run", "x", "--temperature", "9", "-m", "offline"], "--temperature should be a number"),
        (["run", "x", "--max-steps", "0", "-m", "offline"], "--max-steps should be a whole"),
        (["run", "x", "--base-url", "ftp://x", "-m", "openai/x"], "the base URL has to begin"),
        (["run", "x", "--image", "none.png", "-m", "offline"], "none.png: cannot be read"),
        (["sessions", "show", "zzz"], "there is no session 'zzz'"),
        (["sessions", "lst"], "there is no command 'lst'"),
        (["config", "nope"], "there is no command 'nope'"),
        (["policy", "chek"], "Did you mean `bridle policy check`?"),
        (["completion"], "choose one of bash, zsh, fish"),
        (["completion", "nope"], "bridle: 'nope' is not one of 'bash', 'zsh', 'fish'"),
        (["rnu"], "there is no command 'rnu'"),
        (["--nonsense"], "no such option '--nonsense'"),
        (["serve", "--port", "x"], "invalid value for '--port': 'x' is not a whole number"),
    ],
)
def test_a_mistake_is_one_line_and_a_hint(bridle: Program, arguments: list[str], said: str):
    assert said in complaint(bridle, *arguments, code=2)


def test_a_file_keeps_its_name_where_a_sentence_begins_with_it(bridle: Program):
    (bridle.workspace / "README.md").write_text("no picture\n")
    said = complaint(bridle, "run", "x", "--image", "README.md", "-m", "offline", code=2)
    assert said.startswith("bridle: README.md: this is not a PNG")


@pytest.mark.parametrize("group", ["sessions", "policy"])
def test_a_group_without_a_command_shows_its_page(bridle: Program, group: str):
    done = bridle.run(group)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == bridle.run(group, "--help").stdout


def test_a_malformed_settings_file_is_named_with_its_line(bridle: Program):
    file = bridle.home / ".config" / "bridle" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("model: offline\nmodle: x\n")
    said = complaint(bridle, "run", "x", code=2)
    assert f"{file}:2: there is no setting `modle`" in said


def test_a_settings_file_of_the_workspace_is_never_read(bridle: Program):
    for name in ("config.yaml", ".bridle/config.yaml", ".config/bridle/config.yaml"):
        path = bridle.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("model: nonsense/x\nbase_url: http://127.0.0.1:1\n")
    (bridle.workspace / ".env").write_text("BRIDLE_MODEL=nonsense/x\n")
    done = bridle.run("run", "hi", "-m", bridle.script("ok"))
    assert (done.returncode, done.stdout) == (0, "ok\n")


def test_a_host_that_cannot_be_reached_is_said(bridle: Program):
    with socket.socket() as nobody:  # bound, and not listening
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        flags = ("--base-url", url, "--retries", "0")
        done = bridle.run("run", "x", "-m", "anthropic/y", *flags, BRIDLE_API_KEY="k")
    assert (done.returncode, done.stdout) == (1, "")
    assert "bridle: " in done.stderr and "Traceback" not in done.stderr
    assert "Check the network, the proxy settings and the base URL." in done.stderr


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "the API key"), (404, "Check the model's name"), (429, "Wait a little")],
)
def test_what_a_vendor_refuses_is_passed_on(bridle: Program, status: int, said: str):
    fault = {"error": {"status": status, "message": "no", "kind": "invalid"}}
    done = bridle.run("run", "x", "-m", bridle.script(fault))
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr


def test_a_state_folder_that_cannot_be_written_is_said(bridle: Program):
    bridle.state.write_text("a file in the way")
    done = bridle.run("run", "x", "-m", bridle.script("ok"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be written" in done.stderr and "Traceback" not in done.stderr


def test_a_key_that_others_can_read_is_warned_about_and_never_shown(bridle: Program):
    file = bridle.home / "c.yaml"
    file.write_text("api_key: abcdefghijklmnopqrstuvwxyz\n")
    file.chmod(0o644)
    done = bridle.run("run", "x", "-m", bridle.script("ok"), BRIDLE_CONFIG=str(file))
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert f"chmod 600 {file}" in done.stderr
    assert "abcdefgh" not in done.stderr + Path(bridle.logs()[0]).read_text()
