"""The responder without a network: what it asks for and what it says."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from bridle.messages import Message, Text, ToolCall, ToolOutput, user
from bridle.protocols.provider import Request, drain
from bridle.providers.offline import Offline
from bridle.usage import Price, Usage

WHO = "I am bridle's offline responder: a few rules, not a language model."


class Named(Struct):
    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


TOOLS = [Named(name) for name in ("glob", "grep", "read", "shell")]


def reply(messages: Sequence[Message], tools: Sequence[Named] = TOOLS) -> Message:
    return asyncio.run(drain(Offline().stream(Request(messages, tools)))).message


def asked(prompt: str) -> tuple[str, dict[str, Any]] | str:
    message = reply([user(prompt)])
    if not message.tool_calls:
        return message.content
    assert message.content == ""
    [call] = message.tool_calls
    return call.name, call.arguments


def told(prompt: str, *results: ToolOutput) -> Message:
    """The reply after these results, each of which answered a call of its own."""
    messages = [user("hello"), Message("assistant", (Text("Hello."),)), user(prompt)]
    for result in results:
        call = ToolCall(result.call_id, result.name, {})
        messages += [Message("assistant", (call,)), Message("tool", (result,))]
    return reply(messages)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("list the files", ("glob", {"pattern": "**/*"})),
        ("What files are here?", ("glob", {"pattern": "**/*"})),
        ("what's here?", ("glob", {"pattern": "**/*"})),
        ("ls", ("glob", {"pattern": "**/*"})),
        ("List the files in src/.", ("glob", {"pattern": "src/**/*"})),
        ("list the files in this folder", ("glob", {"pattern": "**/*"})),
        ("find *.py", ("glob", {"pattern": "*.py"})),
        ("Please read README.md.", ("read", {"path": "README.md"})),
        ("show me `src/a b.py`", ("read", {"path": "src/a b.py"})),
        ("read @README.md", ("read", {"path": "README.md"})),
        ('read @"a b.md"', ("read", {"path": "a b.md"})),
        ("list the files in @src/", ("glob", {"pattern": "src/**/*"})),
        ("search @cache in @src", ("grep", {"pattern": "@cache", "path": "src"})),
        ("cat .gitignore", ("read", {"path": ".gitignore"})),
        ("search TODO", ("grep", {"pattern": "TODO"})),
        ("search for 'f(x)' in src", ("grep", {"pattern": r"f\(x\)", "path": "src"})),
        ("grep two words in docs?", ("grep", {"pattern": "two words", "path": "docs"})),
        ("run the tests", ("glob", {"pattern": "*"})),
        ("please run all of the unit tests!", ("glob", {"pattern": "*"})),
    ],
)
def test_a_prompt_it_knows_asks_for_a_tool(prompt: str, expected: object) -> None:
    assert asked(prompt) == expected


@pytest.mark.parametrize("prompt", ["hello", "help", "what can you do?", "mend the universe", "  "])
def test_it_says_in_its_first_answer_that_it_is_no_language_model(prompt: str) -> None:
    said = asked(prompt)
    assert isinstance(said, str)
    assert said.count(WHO) == 1
    assert "run the tests" in said


def test_it_says_so_again_only_when_it_does_not_understand() -> None:
    assert WHO in told("mend the universe").content
    assert WHO not in told("hello").content


@pytest.mark.parametrize(
    ("prompt", "result", "expected"),
    [
        (
            "list the files",
            ToolOutput("1", "a.py\nb.py\n", name="glob"),
            "2 files here:\n```\na.py\nb.py\n```",
        ),
        ("list the files", ToolOutput("1", "", name="glob"), "There is nothing here."),
        (
            "read a.md",
            ToolOutput("1", "# A\n```sh\n", name="read"),
            "a.md, 2 lines:\n````\n# A\n```sh\n````",
        ),
        (
            "read gone",
            ToolOutput("1", "gone: there is no such file", True, name="read"),
            "That did not work: gone: there is no such file",
        ),
        (
            "search x in src",
            ToolOutput("1", "src/a.py:1:x", name="grep"),
            "“x” in src: 1 line:\n```\nsrc/a.py:1:x\n```",
        ),
        ("search x", ToolOutput("1", "", name="grep"), "“x” was not found."),
        ("search x", ToolOutput("1", "No matches found.", name="grep"), "“x” was not found."),
        (
            "search x",
            ToolOutput("1", "No line fits `x`.\n[stopped after 10 s]", name="grep"),
            "“x” was not found.",
        ),
        (
            "list the files",
            ToolOutput("1", "a.py\n[… and 7 more]", name="glob"),
            "1 file here:\n```\na.py\n```",
        ),
        ("list the files", ToolOutput("1", "(no files)", name="glob"), "There is nothing here."),
        ("read a", ToolOutput("1", "No files", name="read"), "a, 1 line:\n```\nNo files\n```"),
    ],
)
def test_it_tells_what_the_tool_found(prompt: str, result: ToolOutput, expected: str) -> None:
    assert told(prompt, result).content == expected


def test_a_long_result_is_told_in_bounds() -> None:
    said = told("list the files", ToolOutput("1", ("x" * 999 + "\n") * 5000, name="glob")).content
    assert len(said) < 2000
    assert said.endswith("… and 4990 more.")


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ("README.md\npyproject.toml\nMakefile", "python3 -m pytest -q"),
        ("package.json", "npm test"),
        ("test_sums.py\nsums.py", "python3 -m pytest -q"),
        ("./Cargo.toml", "cargo test"),
        ("Makefile", "make test"),
    ],
)
def test_it_runs_the_tests_in_the_way_the_workspace_asks_for(files: str, command: str) -> None:
    message = told("run the tests", ToolOutput("1", files, name="glob"))
    assert message.parts == (ToolCall("offline_5", "shell", {"command": command}),)


def test_it_looks_deeper_for_tests_and_then_gives_up() -> None:
    nothing = ToolOutput("1", "notes.txt", name="glob")
    deeper = told("run the tests", nothing).tool_calls[0]
    assert (deeper.name, deeper.arguments) == ("glob", {"pattern": "**/test_*.py"})
    found = told("run the tests", nothing, ToolOutput("2", "t/test_a.py", name="glob"))
    assert found.tool_calls[0].name == "shell"
    none = told("run the tests", nothing, ToolOutput("2", "", name="glob"))
    assert none.content == "I see nothing here that says how its tests are run."


def test_it_tells_how_the_tests_ended() -> None:
    files = ToolOutput("1", "pyproject.toml", name="glob")
    passed = told("run the tests", files, ToolOutput("2", "2 passed", name="shell"))
    assert passed.content == "The tests ran. The end of the output:\n```\n2 passed\n```"
    failed = told("run the tests", files, ToolOutput("2", "1 failed", True, name="shell"))
    assert failed.content.startswith("The tests did not pass.")


def test_without_the_tool_it_says_what_is_missing() -> None:
    said = reply([user("read a.md")], [Named("glob")]).content
    assert said == f"{WHO}\nFor that I need the tool `read`, which is not available here."


def test_it_costs_nothing_and_says_so() -> None:
    assert Offline().info.price == Price(0, 0)
    assert asyncio.run(drain(Offline().stream(Request([user("hi")])))).usage == Usage()


@given(st.text(max_size=300), st.lists(st.text(max_size=50), max_size=6), st.booleans())
def test_any_turn_ends_within_three_calls(prompt: str, texts: list[str], error: bool) -> None:
    """Whatever the tools say, the responder does not ask for ever."""
    messages = [user(prompt)]
    for text in [*texts, "", "", "", ""]:
        message = reply(messages)
        if not message.tool_calls:
            assert message.content
            return
        [call] = message.tool_calls
        output = ToolOutput(call.id, text, error, name=call.name)
        messages += [message, Message("tool", (output,))]
    raise AssertionError("it never stopped asking")
