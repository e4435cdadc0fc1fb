"""The work of `bridle demo`: a small project, a scripted model, and the turn that fixes it.

Only the model is scripted; files, commands, approvals and the log are real. At the end the test is
run once more, by us, and the exit code says whether it passes."""

import asyncio
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bridle.cli.approval_prompt import full_text
from bridle.cli.exit_codes import DONE, FAILED, complain
from bridle.cli.printer import Printer
from bridle.cli.render import usage_line
from bridle.cli.signals import run_async
from bridle.cli.style import wrapped
from bridle.cli.turn import Watch
from bridle.engine.session import Session
from bridle.events import ApprovalAsked
from bridle.protocols.provider import ProviderInfo
from bridle.protocols.session import NO, Answer, TurnResult
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.usage import Price

PROMPT = "The test in this folder fails. Find out why and fix it."
TEST = f"{shlex.quote(sys.executable)} -B -m unittest -q"

PROJECT = {
    "basket.py": '''\
"""A shopping basket."""


def total(prices, discount=0):
    """What the basket costs; `discount` is in percent."""
    return sum(prices) * (100 - discount) / 10
''',
    "test_basket.py": """\
import unittest

from basket import total


class BasketTest(unittest.TestCase):
    def test_a_discount_is_taken_off(self):
        self.assertEqual(total([40, 60], discount=25), 75)


if __name__ == "__main__":
    unittest.main()
""",
    "README.md": "# basket\n\nPrices, summed. Run the test with `python -m unittest`.\n",
}

_WRONG = "    return sum(prices) * (100 - discount) / 10\n"
_RIGHT = "    return sum(prices) * (100 - discount) / 100\n"

ANSWERS = {
    TEST: Answer(True, "session"),
    "rm basket.py test_basket.py": Answer(
        False, word="fix the line, do not throw the project away"
    ),
    "edit": Answer(True),
}


def create_project(folder: Path) -> None:
    """Write the files of the project."""
    for name, content in PROJECT.items():
        (folder / name).write_text(content)


def model(*, fast: bool) -> Scripted:
    """Return a model that replies at the pace of a real one, or at once."""
    pace = {} if fast else {"delay": 0.7, "pause": 0.03}
    info = ProviderInfo("scripted", "demo", 200_000, price=Price(3, 15, 0.3))
    return Scripted([{**reply, **pace} for reply in _replies()], info=info)


def _replies() -> list[dict[str, Any]]:
    return [
        _say(
            "I will look at what is here, run the test, and go from there.",
            (900, 0, 60),
            ("todo_write", _todos("in_progress", "pending", "pending")),
        ),
        _say("", (120, 900, 30), ("glob", {"pattern": "**/*.py"})),
        _say(
            "",
            (150, 1020, 70),
            ("read", {"path": "basket.py"}),
            ("read", {"path": "test_basket.py"}),
        ),
        _say("Now the test.", (420, 1170, 40), ("shell", {"command": TEST})),
        _say(
            "75 was expected, and ten times as much came. "
            "Maybe a price list outside of the project explains it?",
            (260, 1590, 60),
            ("read", {"path": "../../prices.txt"}),
        ),
        _say(
            "That is not mine to read. Or a clean start?",
            (110, 1850, 50),
            ("shell", {"command": "rm basket.py test_basket.py"}),
        ),
        _say(
            "Fair enough. The cause is in `total`: a percentage is divided by 100, not by 10.",
            (200, 1960, 90),
            ("edit", {"path": "basket.py", "old": _WRONG, "new": _RIGHT}),
        ),
        _say("The same test again.", (180, 2160, 40), ("shell", {"command": TEST})),
        _say("", (120, 2340, 50), ("todo_write", _todos("completed", "completed", "completed"))),
        _say(
            "The test passes. `total` divided by 10 where it has to divide by 100; that one line "
            "of basket.py is changed, and nothing else.",
            (90, 2460, 45),
        ),
    ]


def _say(
    text: str, use: tuple[int, int, int], *calls: tuple[str, dict[str, Any]]
) -> dict[str, Any]:
    fresh, cached, written = use
    return {
        "text": text,
        "calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
        "usage": {"input_tokens": fresh, "cache_read_tokens": cached, "output_tokens": written},
    }


def _todos(*states: str) -> dict[str, Any]:
    things = ("Find out why the test fails", "Fix it", "Run the test again")
    return {
        "todos": [
            {"content": thing, "status": state} for thing, state in zip(things, states, strict=True)
        ]
    }


_WHO = "the demo"


def run_demo(*, fast: bool) -> int:
    """Create the project in a folder of its own, run the demo, and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="bridle-demo-") as folder:
        create_project(Path(folder))
        return run_async(Demo(Path(folder), fast=fast).run())


class Demo:
    """One run of the demo."""

    def __init__(self, folder: Path, *, fast: bool) -> None:
        self._folder = folder
        self._fast = fast
        self._printer = Printer(sys.stdout, sys.stderr, live=True)
        self._answering: list[asyncio.Future[None]] = []

    async def run(self) -> int:
        """Run the turn, and return an exit code: whether the project was fixed."""
        paint, line = self._printer.paint, self._printer.line
        line(
            paint.bold("bridle demo") + paint.dim("  a scripted model, real tools, real approvals")
        )
        line(paint.dim(f"a small project with a failing test is in {self._folder}"))
        line(f"\n{paint.cyan('❯')} {paint.bold(PROMPT)}")
        scripted = model(fast=self._fast)
        async with build_engine(
            scripted, workspace=self._folder, on_ask="wait", mode="ask", face="demo"
        ) as engine:
            session = await engine.session()
            self._printer.on_asked = lambda asked: self._on_request(session, asked)
            async with Watch(session, self._printer.feed) as watch:
                result = await watch.send(PROMPT)
            self._print_end(result, session.log_path)
        return self._verify(result)

    def _on_request(self, session: Session, asked: ApprovalAsked) -> None:
        self._answering.append(asyncio.ensure_future(self._answer(session, asked)))

    async def _answer(self, session: Session, asked: ApprovalAsked) -> None:
        """Answer an approval request in the name of the demo."""
        call, paint = asked.call, self._printer.paint
        answer = ANSWERS.get(str(call.arguments.get("command", call.name)), NO)
        self._printer.line(full_text([asked], paint, self._printer.width))
        await asyncio.sleep(0 if self._fast else 1.2)
        said = paint.green("yes") if answer.allowed else paint.red("no")
        until = ", for this session" if answer.scope == "session" else ""
        word = f": {answer.word}" if answer.word else ""
        self._printer.line(f"  {_WHO} says {said}{until}{word}")
        await session.answer(call.id, answer, shown=asked.shown, by=_WHO)

    def _print_end(self, result: TurnResult, log: str) -> None:
        paint, line = self._printer.paint, self._printer.line
        line("")
        width = self._printer.width
        line(paint.dim(wrapped(usage_line(result.metrics), width)))
        line(
            paint.dim(
                wrapped("the cost is made up: no model was used, and nothing is charged", width)
            )
        )
        line(f"the log     {paint.dim(log)}")
        line(f"to show it  {paint.cyan('bridle sessions show ' + result.session_id)}")

    def _verify(self, result: TurnResult) -> int:
        """Run the test ourselves, instead of believing the model."""
        test = shlex.split(TEST)
        done = subprocess.run(test, cwd=self._folder, capture_output=True, text=True, timeout=60)
        if not result.ok or done.returncode:
            complain(
                f"the project was not fixed: {result.detail or 'the test still fails'}",
                "This is a bug in bridle: please report it.",
            )
            return FAILED
        self._printer.line(f"{self._printer.paint.green('✓')} verified: the test passes now")
        return DONE
