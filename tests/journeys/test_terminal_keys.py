"""Keys and clicks in a real terminal: each does what it means, in the order in which it came."""

import time

import pytest
from terminal_rig import needs_tmux

pytestmark = needs_tmux

ORDERS = [  # keys as tmux names them, and what has to be sent then
    ("h e l l o BSpace BSpace X", "helX"),
    ("h e l l o C-a X Y", "XYhello"),
    ("h e l l o Left Left X", "helXlo"),
    ("o n e Space t w o C-w X", "one X"),
    ("o n e C-u X Y", "XY"),
    ("l o n g Home A End B", "AlongB"),
    ("a b c Left C-k X", "abX"),
    ("a b c Home DC X", "Xbc"),
    ("a b c C-a C-d X", "Xbc"),
    ("o n e Space t w o M-b X", "one Xtwo"),
    ("o n e Space t w o M-b M-b X M-f Y", "XoneY two"),
    ("a b C-j c Up End X", "abX\nc"),
    ("a b S-Left S-Left X Y", "XY"),
    ("a BSpace b BSpace c BSpace d", "d"),
    ("a b c d e f Left BSpace Left BSpace Right X", "abdXf"),
]


def prompts(place):
    """The prompts that were received, in their order."""
    found = [one["data"] for session in place.sessions() for one in place.records(session)]
    return [one["content"] for one in found if one["type"] == "user_prompt"]


def story(streaming):
    """The replies for a table: with a stream, the first one goes on until the table is through."""
    long = {"text": "word " * 60_000, "pause": 0.002}
    return [long] if streaming else ["done"] * len(ORDERS)


@pytest.mark.parametrize("streaming", [False, True], ids=["at rest", "while a reply streams"])
@pytest.mark.parametrize("pause", [0, 0.02], ids=["in one write", "20 ms apart"])
def test_every_key_is_applied_in_the_order_in_which_it_arrived(
    place, open_terminal, pause, streaming
):
    model = place.script(*story(streaming))
    screen = open_terminal("bridle", "--model", model)
    screen.until("Describe a task and press")
    if streaming:
        screen.say("begin")
        screen.until("word word")
    for keys, _ in ORDERS:
        words = keys.split()
        for some in [words] if not pause else [[one] for one in words]:
            screen.press(*some)
            time.sleep(pause)  # nothing is waited for: this is how fast somebody types
        screen.press("Enter")
    wanted = ["begin"] * streaming + [text for _, text in ORDERS]
    screen.when(lambda seen: len(prompts(place)) >= len(wanted), "every prompt")
    assert prompts(place) == wanted


def test_after_a_click_on_the_conversation_letters_reach_the_composer(place, open_terminal):
    model = place.script("an answer to click on")
    screen = open_terminal("bridle", "--model", model)
    screen.until("Describe a task and press")
    screen.click(30, 10)
    screen.type("before")
    screen.until("› before")
    screen.press("Enter")
    screen.until("an answer to click on")
    screen.click(5, 4)
    screen.press("Tab")
    screen.type("after")
    screen.until("› after")
    for row in (27, 28, 29, 30):  # the rule, the composer, the bar
        screen.click(50, row)
        screen.type(str(row))
    screen.until("after27282930")


def program(place, name, *lines):
    """A program of that name, found before those of the machine."""
    folder = place.folder / "programs"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(["#!/bin/sh", *lines, ""]))
    (folder / name).chmod(0o755)
    if str(folder) not in place.environ["PATH"]:
        place.environ["PATH"] = f"{folder}:{place.environ['PATH']}"


def test_without_a_chosen_editor_ctrl_g_opens_one_that_is_installed(place, open_terminal):
    program(place, "sensible-editor", 'echo "and more" >> "$1"')
    screen = open_terminal("bridle", "--model", place.script("done"))
    screen.until("Describe a task and press")
    screen.type("a draft")
    screen.until("› a draft")
    screen.press("C-g")
    screen.until("a draft", "and more")
    screen.type(", typed")
    screen.until("and more, typed")


@pytest.mark.parametrize("opened_with", ["C-g", "/editor"])
@pytest.mark.parametrize("editor", ["no-such-editor", "false", "quit-with-an-error", "'unclosed"])
def test_an_editor_that_fails_gives_the_screen_back_with_the_draft(
    place, open_terminal, editor, opened_with
):
    program(place, "quit-with-an-error", "echo CHANGED > $1", "echo GONE", "exit 1")  # vim's :cq
    place.environ["EDITOR"] = editor
    screen = open_terminal("bridle", "--model", place.script("done"))
    screen.until("Describe a task and press")
    if opened_with == "C-g":
        screen.type("a draft")
        screen.until("› a draft")
        screen.press("C-g")
        screen.until("unchanged.", "› a draft")
        screen.type(" goes on")
        screen.until("› a draft goes on")
        screen.press("C-u")
    else:
        screen.type("/editor a draft")
        screen.until("/editor a draft")
        screen.press("Enter")
        screen.until("unchanged.", "› /editor a draft")
        screen.press("C-u")
    screen.press("C-c")
    screen.until("again to quit")
    screen.press("C-c")
    screen.until_over()


def test_ctrl_c_stops_the_turn_then_clears_the_draft_and_leaves_only_when_nothing_is_left(
    place, open_terminal
):
    model = place.script({"text": "word " * 60_000, "pause": 0.01}, "still here")
    screen = open_terminal("bridle", "--model", model)
    screen.until("Describe a task and press")
    screen.say("go on and on")
    screen.until("word word")
    screen.type("a draft")
    screen.press("C-c", "C-c")
    screen.until("stopped", "Ctrl+Y to restore")
    screen.until_gone("a draft")
    screen.press("C-y")
    screen.until("› a draft")
    screen.press("C-c")
    screen.until_gone("› a draft")
    screen.say("are you there")
    screen.until("still here")
    screen.press("C-c")
    screen.until("again to quit")
    screen.press("C-c")
    screen.until_over()


def test_what_was_deleted_comes_back_with_ctrl_y(place, open_terminal):
    screen = open_terminal("bridle", "--model", place.script("done"))
    screen.until("Describe a task and press")
    screen.press(*"one", "Space", *"two", "C-w", *"three", "Space", "C-y")
    screen.until("› one three two")
    screen.press("C-a", "C-k", "X", "C-y", "C-_")
    screen.until("› X")


def test_ctrl_z_gives_the_terminal_back_to_the_shell_until_fg(place, open_terminal):
    screen = open_terminal("bash", "--norc", "-i")
    screen.until("bash-")
    screen.type(f"bridle --model {place.script('an answer')}")
    screen.press("Enter")
    screen.until("Describe a task and press")
    screen.say("hello there")
    screen.until("an answer")
    screen.press(*"draft", "C-z")
    screen.until("Stopped", "bash-")
    screen.type("echo $((6 * 7)) answers; fg")
    screen.press("Enter")
    screen.until("an answer", "› draft")
    screen.type(" goes on")
    screen.until("› draft goes on")
    screen.press("C-u", "C-d")
    screen.until("42 answers", "bash-")


def test_ctrl_z_without_a_shell_to_go_back_to_stops_nothing(place, open_terminal):
    screen = open_terminal("bridle", "--model", place.script("done"))
    screen.until("Describe a task and press", "sandbox")
    screen.press("C-z")
    screen.until("by a shell with job control")
    screen.type("still here")
    screen.until("› still here")


def test_ctrl_l_repaints_what_another_program_wrote_over(place, open_terminal):
    screen = open_terminal("bridle", "--model", place.script("done"))
    screen.until("Describe a task and press", "sandbox")
    with open(screen.tty, "w") as terminal:  # noqa: PTH123
        terminal.write("\x1b[5;5HGARBAGE FROM ELSEWHERE\x1b[28;5HMORE GARBAGE")
    screen.until("GARBAGE FROM ELSEWHERE", "MORE GARBAGE")
    screen.press("C-l")
    screen.until_gone("GARBAGE")
    screen.until("Describe a task and press", "sandbox")
