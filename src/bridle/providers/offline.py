"""A responder that needs no key and no network: a table of rules over the last prompt.

It is not a language model and says so. It asks for tools as a model would (list, read, search,
run the tests) and summarises the result in a sentence or two. Knows the tools by name only.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import Struct

from bridle.events import ModelEvent
from bridle.messages import Message, Part, Text, ToolCall, ToolOutput
from bridle.protocols.provider import ProviderInfo, Request
from bridle.providers.scripted import Reply, play
from bridle.usage import Price

_WHO = "I am bridle's offline responder: a few rules, not a language model."
_CAN = (
    "I can list the files («list the files»), read one («read README.md»), search "
    "(«search TODO in src») and run the tests («run the tests»). "
    "For more, set an API key or start a local model; `bridle doctor` says what was found."
)
_PROMPT_READ = 2_000
_LINES_SHOWN = 10
_WIDEST = 160


class ToolRequest(Struct, frozen=True):
    """A tool to call."""

    tool: str
    arguments: dict[str, Any]


Words = Mapping[str, str]
Results = Sequence[ToolOutput]
Plan = Callable[[Words, Results], ToolRequest | str]


def _list(words: Words, results: Results) -> ToolRequest | str:
    place = words["place"]
    if not results:
        return ToolRequest("glob", {"pattern": f"{place.rstrip('/')}/**/*" if place else "**/*"})
    where = f"in {place}" if place else "here"
    return _summary(results[-1], f"There is nothing {where}.", f"{{count}} {where}:", "file")


def _find(words: Words, results: Results) -> ToolRequest | str:
    if not results:
        return ToolRequest("glob", {"pattern": words["pattern"]})
    return _summary(results[-1], f"No file fits {words['pattern']}.", "{count} found:", "file")


def _search(words: Words, results: Results) -> ToolRequest | str:
    what, place = words["what"], words["place"]
    if not results:
        pattern = re.sub(r"([\\.^$|?*+()\[\]{}])", r"\\\1", what)
        return ToolRequest("grep", {"pattern": pattern, **({"path": place} if place else {})})
    where = f" in {place}" if place else ""
    return _summary(results[-1], f"“{what}” was not found{where}.", f"“{what}”{where}: {{count}}:")


def _read(words: Words, results: Results) -> ToolRequest | str:
    if not results:
        return ToolRequest("read", {"path": words["path"]})
    return _summary(results[-1], f"{words['path']} is empty.", f"{words['path']}, {{count}}:")


def _test(words: Words, results: Results) -> ToolRequest | str:
    """Look at what is here, then (only if that says nothing) for tests, then run."""
    last = results[-1] if results else None
    if last is None:
        return ToolRequest("glob", {"pattern": "*"})
    if last.name == "shell" or len(results) > 2:
        return _tested(last)
    if last.is_error:
        return _failure(last)
    if command := _command(_lines(last)):
        return ToolRequest("shell", {"command": command})
    if len(results) == 1:
        return ToolRequest("glob", {"pattern": "**/test_*.py"})
    return "I see nothing here that says how its tests are run."


_RUNNERS = {
    "pyproject.toml": "python3 -m pytest -q",
    "pytest.ini": "python3 -m pytest -q",
    "tox.ini": "python3 -m pytest -q",
    "setup.cfg": "python3 -m pytest -q",
    "setup.py": "python3 -m pytest -q",
    "conftest.py": "python3 -m pytest -q",
    "package.json": "npm test",
    "Cargo.toml": "cargo test",
    "go.mod": "go test ./...",
    "Makefile": "make test",
}


def _command(lines: Sequence[str]) -> str:
    paths = [line.strip().removeprefix("./") for line in lines]
    for marker, command in _RUNNERS.items():
        if marker in paths:
            return command
    tests = any(re.search(r"(^|/)test_[^/]*\.py$", path) for path in paths)
    return "python3 -m pytest -q" if tests else ""


def _tested(output: ToolOutput) -> str:
    verdict = "The tests did not pass" if output.is_error else "The tests ran"
    shown = [line[:_WIDEST] for line in _lines(output)[-_LINES_SHOWN:]]
    return f"{verdict}. The end of the output:\n{_code_block(shown)}" if shown else f"{verdict}."


def _greet(words: Words, results: Results) -> str:
    return f"Hello. {_CAN}"


def _help(words: Words, results: Results) -> str:
    return f"{_WHO} {_CAN}"


_PLACE = r"(?: (?:in|of|under|from) (?:the )?(?:folder |directory )?@?(?P<place>[^\s,;]+))?"
_LIST = (
    rf"\b(?:list|show(?: me)?|what|which)\b.{{0,30}}\b(?:files?|folders?)\b{_PLACE}"
    r"|\bwhat(?: is|['’]s) (?:in )?(?:here|there)\b|^(?:ls|list)\W*$"
)
_FIND = (
    r"\b(?:find|list|search|glob) (?:for )?(?:the |all )?(?:files? )?"
    r"(?:named |called |like )?(?P<pattern>\S*[*]\S*)"
)
_SEARCH = (
    r"\b(?:search|grep|find|look) (?:for )?(?:the word )?"
    rf"(?P<what>[`'\"“][^`'\"”]+[`'\"”]|.+?){_PLACE}[ .?!]*$"
)
_READ = (
    r"\b(?:read|show(?: me)?|open|cat|print|display) (?:me )?(?:the )?"
    r"(?:file |contents? of )*@?(?P<path>[`'\"][^`'\"]+[`'\"]|\S+)"
)
_TABLE: tuple[tuple[str, Plan], ...] = (
    (r"\brun\b.{0,40}\btests?\b|\brun pytest\b|^(?:make )?tests?\W*$", _test),
    (_LIST, _list),
    (_FIND, _find),
    (_SEARCH, _search),
    (_READ, _read),
    (r"\bhelp\b|\bwhat can you do\b|\bwho are you\b|^\W*$", _help),
    (r"^(?:hello|hi|hey|good (?:morning|day|evening)|greetings)\b", _greet),
)
_HERE = {"this", "here", "it", "workspace", "project", "repository", "repo", "folder", "directory"}


class Offline:
    """Keeps the provider's promise with rules. It costs nothing, so its price is known: zero."""

    def __init__(self) -> None:
        self.info = ProviderInfo("offline", "offline", price=Price(0, 0), local=True)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Answer the last prompt, or ask for the tool that the answer needs."""
        number = len(request.messages)
        part = _answer(request, f"offline_{number}")
        reply = play(Reply(), (part,), self.info, f"offline_{number}")
        async with aclosing(reply) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _answer(request: Request, call_id: str) -> Part:
    prompt, results = _last_turn(request.messages)
    step = _plan(prompt[:_PROMPT_READ], results)
    if isinstance(step, ToolRequest):
        if any(tool.name == step.tool for tool in request.tools):
            return ToolCall(call_id, step.tool, step.arguments)
        step = f"For that I need the tool `{step.tool}`, which is not available here."
    said = any(each.role == "assistant" and each.content for each in request.messages)
    return Text(step if said or _WHO in step else f"{_WHO}\n{step}")


def _plan(prompt: str, results: Results) -> ToolRequest | str:
    text = " ".join(prompt.split())  # the patterns know single spaces only, which keeps them fast
    for pattern, plan in _TABLE:
        if match := re.search(pattern, text, re.IGNORECASE):
            words = {name: _word(value) for name, value in match.groupdict().items()}
            if words.get("place", "").lower() in _HERE:
                words["place"] = ""
            if all(word for name, word in words.items() if name != "place"):
                return plan(words, results)
    return f"I do not understand that. {_WHO} {_CAN}"


def _word(value: str | None) -> str:
    bare = (value or "").strip(" `'\"“”").rstrip("?!,;:").strip(" `'\"“”")
    return bare[:-1] if bare.endswith(".") and len(bare) > 1 else bare


def _last_turn(messages: Sequence[Message]) -> tuple[str, Results]:
    """Return the newest prompt, and the tool results that came after it."""
    results: list[ToolOutput] = []
    for message in reversed(messages):
        if message.role == "user" and message.content:
            return message.content, results
        results[:0] = message.tool_results
    return "", results


def _summary(output: ToolOutput, nothing: str, title: str, noun: str = "line") -> str:
    if output.is_error:
        return _failure(output)
    lines = [line for line in _lines(output) if not re.fullmatch(r"\[.*\]", line)]  # remarks
    if not lines or (output.name in ("glob", "grep") and _is_empty_result(lines)):
        return nothing
    count = f"1 {noun}" if len(lines) == 1 else f"{len(lines)} {noun}s"
    shown = [line[:_WIDEST] for line in lines[:_LINES_SHOWN]]
    rest = len(lines) - len(shown)
    more = f"\n… and {rest} more." if rest else ""
    return f"{title.replace('{count}', count)}\n{_code_block(shown)}{more}"


def _is_empty_result(lines: Sequence[str]) -> bool:
    """Does the tool say in words that it found nothing?"""
    words = r"\(?(?:no|nothing)\s+(?:files?|match\w*|lines?|results?|found|here)\b"
    return len(lines) == 1 and re.match(words, lines[0], re.IGNORECASE) is not None


def _failure(output: ToolOutput) -> str:
    lines = _lines(output)
    return f"That did not work: {lines[0][:_WIDEST] if lines else 'the tool gave no reason'}"


def _lines(output: ToolOutput) -> list[str]:
    return [line for line in output.text.splitlines() if line.strip()]


def _code_block(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence}\n{text}\n{fence}"
