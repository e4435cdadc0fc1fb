"""The demo's small project, and what its scripted model says and asks for. Data, no more."""

import shlex
import sys
from pathlib import Path
from typing import Any

from bridle.protocols.provider import ProviderInfo
from bridle.protocols.session import Answer
from bridle.providers.scripted import Scripted
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


def lay_out(folder: Path) -> None:
    """Make the project."""
    for name, content in PROJECT.items():
        (folder / name).write_text(content)


def model(*, fast: bool) -> Scripted:
    """A model that says its lines at the pace of a real one, or at once."""
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
