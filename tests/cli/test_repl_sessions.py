"""The REPL's commands about its own session: fork, rewind, rename, search, export; parked turns."""

import json

import pytest
from cli_program import Program

SHELL = {"calls": [{"name": "shell", "arguments": {"command": "echo made > made.txt"}}]}


def told(bridle: Program, *lines: str, replies: int = 4, **more) -> str:
    """What a REPL says besides its answers when it is given these lines."""
    model = bridle.script(*[f"Answer {number}." for number in range(1, replies + 1)])
    text = "".join(f"{line}\n" for line in lines).encode()
    done = bridle.run("repl", "-m", model, stdin=text, **more)
    assert done.returncode == 0
    return done.stderr


def by_session(bridle: Program, kind: str) -> dict[str, list[dict]]:
    found = {}
    for log in bridle.logs():
        data = [json.loads(line)["data"] for line in log.read_text().splitlines()]
        found[log.parent.name] = [one for one in data if one["type"] == kind]
    return found


def test_a_fork_goes_on_in_a_copy_and_leaves_the_first_as_it_was(bridle: Program):
    said = told(bridle, "one", "/fork", "two")
    prompts = by_session(bridle, "user_prompt")
    first, second = sorted(prompts, key=lambda name: len(prompts[name]))
    assert [one["content"] for one in prompts[first]] == ["one"]
    assert [one["content"] for one in prompts[second]] == ["one", "two"]
    assert f"Now in {second}; {first} is unchanged." in said


def test_a_rewind_takes_turns_out_of_the_conversation_and_keeps_the_log(bridle: Program):
    said = told(bridle, "one", "two", "three", "/rewind 2", "four")
    assert said.count("taken back") == 1  # once, and without one's own name
    assert "↶ taken back to #" in said and "; what was done in files and commands stays" in said
    assert " by " not in said
    (rewound,) = next(iter(by_session(bridle, "rewind").values()))
    assert [part["text"] for one in rewound["messages"] for part in one["parts"]] == [
        *("one", "Answer 1.")
    ]
    (prompts,) = by_session(bridle, "user_prompt").values()
    assert [one["content"] for one in prompts] == ["one", "two", "three", "four"]
    session = bridle.logs()[0].parent.name
    far = bridle.run("sessions", "rewind", session, "--turns", "3")
    assert far.returncode == 2 and "the conversation has 2" in far.stderr
    done = bridle.run("sessions", "rewind", session, "--turns", "2", "--json")
    assert json.loads(done.stdout) == {"id": session, "to": 1}
    shown = bridle.run("sessions", "show", session).stdout
    assert "↶ taken back to #1" in shown


@pytest.mark.parametrize("line", ["/fork", "/rewind", "/export x.md"])
def test_a_session_in_which_nothing_was_said_has_nothing_to_copy(bridle: Program, line: str):
    assert "this session is empty" in told(bridle, line)
    assert bridle.logs() == []


@pytest.mark.parametrize("line", ["/rewind x", "/rewind 0", "/fork -1", "/rewind 99999999999"])
def test_a_number_that_is_none_is_said(bridle: Program, line: str):
    assert "takes a number from 1 to 999999999" in told(bridle, "one", line)


def test_a_title_is_given_and_tags_are_found_again(bridle: Program):
    """(S3)"""
    told(bridle, "one", "/rename  A  better title")
    session = bridle.logs()[0].parent.name
    (one,) = json.loads(bridle.run("sessions", "list", "--json").stdout)
    assert one["title"] == "A better title"
    assert bridle.run("sessions", "rename", session, "Another", "one").returncode == 0
    bridle.run("sessions", "tag", session, "#work", "green")
    bridle.run("sessions", "tag", session, "work", "--remove")
    done = bridle.run("sessions", "tag", session, "green", "blue", "--json")
    assert json.loads(done.stdout) == {"id": session, "tags": ["green", "blue"]}
    listed = bridle.run("sessions", "list", "--tag", "blue").stdout
    assert listed.endswith("Another one #green #blue\n")
    assert bridle.run("sessions", "list", "--tag", "work").stdout.startswith("No session has")
    (starts,) = by_session(bridle, "session_start").values()
    assert {one["model"] for one in starts} == {"scripted/scripted"}


def test_titles_and_tags_command_no_terminal(bridle: Program):
    told(bridle, "one")
    session = bridle.logs()[0].parent.name
    evil = "\x1b]0;x\x07\u202e"
    for arguments in (
        ["rename", session, evil],
        ["tag", session, evil],
        ["list"],
        ["show", session],
    ):
        done = bridle.run("sessions", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert not {"\x1b", "\x07", "\u202e"} & set(done.stdout)
    (one,) = json.loads(bridle.run("sessions", "list", "--json").stdout)
    assert (one["title"], one["tags"]) == (evil, [evil])


def test_a_change_of_title_leaves_what_waits_in_the_inbox_to_the_next_turn(bridle: Program):
    told(bridle, "one")
    session = bridle.logs()[0].parent.name
    bridle.run("sessions", "send", session, "later")
    assert bridle.run("sessions", "rename", session, "New").returncode == 0
    assert len(by_session(bridle, "user_prompt")[session]) == 1
    done = bridle.run("run", "--resume", session, "-m", bridle.script("Now."))
    assert done.stdout == "Now.\n"


def test_a_search_and_an_export_from_the_line(bridle: Program):
    said = told(bridle, "where is the needle?", "/search needle", "/search zzz", "/export s.md")
    assert "  #2 prompt where is the needle?" in said and "Nothing was found." in said
    page = (bridle.workspace / "s.md").read_text()
    assert page.startswith("# where is the needle?") and "> Answer 1." in page
    assert "was not changed" in told(bridle, "two", "/export s.md")
    assert (bridle.workspace / "s.md").read_text() == page


@pytest.mark.parametrize("way", ["--resume", "/resume"])
def test_a_parked_session_brings_its_questions_along(bridle: Program, way: str):
    bridle.run("run", "make it", "--on-ask", "park", "-m", bridle.script(SHELL))
    session = bridle.logs()[0].parent.name
    model = bridle.script("Made.", "More.", name="after")
    lines = "y\nand more\n" if way == "--resume" else f"/resume {session}\ny\nand more\n"
    flags = ["--resume", session] if way == "--resume" else []
    done = bridle.run("repl", *flags, "-m", model, stdin=lines.encode())
    assert done.stdout == "Made.\nMore.\n"
    assert done.stderr.count("$ echo made > made.txt") == 1
    assert (bridle.workspace / "made.txt").read_text() == "made\n"
