"""`bridle` at a terminal that has no full screen: without the extra `tui`, or a plain terminal."""

import pytest
from cli_program import Program

HINT = "The full screen is not installed. Install it with: pip install 'bridle-agent[tui]'"


@pytest.fixture
def bare(bridle: Program) -> Program:
    """The program as a bare `pip install bridle-agent` leaves it."""
    hidden = bridle.home / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['textual'] = None\n")
    bridle.environ["PYTHONPATH"] = str(hidden)
    return bridle


@pytest.mark.parametrize("words", [(), ("chat",)])
def test_without_the_extra_the_plain_repl_starts_and_says_how_to_get_the_screen(bare, words):
    model = bare.script("Hello, you.")
    with bare.terminal(*words, "-m", model, "--mode", "plan", columns=200) as terminal:
        terminal.expect(HINT)
        terminal.expect("❯ ")
        terminal.type("hi\n")
        terminal.expect("Hello, you.")
        terminal.expect("❯ ")
        terminal.type("/mode\n")
        terminal.expect("plan")
        terminal.expect("❯ ")
        terminal.type("\x04")
        assert terminal.end()[0] == 0
        assert "This is a bug" not in terminal.everything


def test_without_the_extra_a_session_is_attached_to_line_by_line(bare):
    session = bare.run("run", "--detach", "-q", "-m", bare.script("Hello."), "hi").stdout.strip()
    try:
        with bare.terminal("attach", session, columns=200) as terminal:
            terminal.expect(HINT)
            terminal.expect("❯ ")
            terminal.type("\x04")
            assert terminal.end()[0] == 0
    finally:
        bare.run("stop", "--all")


def test_at_a_plain_terminal_the_list_of_commands_says_how_to_go_on(bridle):
    bridle.environ["TERM"] = "dumb"
    with bridle.terminal(columns=200) as terminal:
        code, shown = terminal.end()
        assert code == 0 and "Commands:" in shown
        assert (
            "This terminal cannot show the full screen. To chat line by line: bridle repl" in shown
        )
