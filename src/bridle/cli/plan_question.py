"""Calls that are themselves a question: a plan to agree to, and whatever `ask_user` asks. Pure.

How they read in a terminal, and what a line that was typed means as an answer. A plan is shown
whole, as the Markdown that it is, with a mark before each of its lines: none of them can pass for
the question itself. Reads no lines and shows nothing.
"""

import re

from bridle.cli.style import Paint, cells, wrapped
from bridle.events import ApprovalAsked
from bridle.protocols.session import Answer
from bridle.workspace.text import flat, neutral

PLAN, ASK = "exit_plan_mode", "ask_user"
_GO = "[y] yes  [y WORDS] yes, with changes  [n] no  or say what is wrong with it"
_YES = re.compile(r"(?:y|yes)(?:[\s,.:;!]+(.*))?|go|ok", re.IGNORECASE | re.DOTALL)
_NO = re.compile(r"(?:n|no)(?:[\s,.:;!]+(.*))?", re.IGNORECASE | re.DOTALL)
_HEADING = re.compile(r"#{1,6} ")


def is_question(asked: ApprovalAsked) -> bool:
    """Is it the call itself that asks, so that yes and no are not the answers to it?"""
    return asked.call.name in (PLAN, ASK)


def plan_question(asked: ApprovalAsked, paint: Paint, width: int = 200) -> str:
    """The whole question with what may be answered; the cursor is to stand behind it."""
    return f"{told(asked, paint, width)}\n{choices(asked, paint)}"


def told(asked: ApprovalAsked, paint: Paint, width: int = 200) -> str:
    """The plan, or the question and its options, without the choices."""
    arguments = asked.call.arguments
    if asked.call.name == PLAN:
        head = f"{paint.yellow('?')} {paint.bold('Go ahead with this plan?')}"
        return "\n".join([head, *_marked(str(arguments.get("plan", "")), paint, width)])
    head = f"{paint.yellow('?')} {paint.bold('A question for you')}"
    lines = [head, *_marked(str(arguments.get("question", "")), paint, width)]
    for number, option in enumerate(_options(asked), 1):
        lines.append(f"  {paint.cyan(f'{number}.')} {flat(option)}")
    return "\n".join(lines)


def choices(asked: ApprovalAsked, paint: Paint) -> str:
    """What may be answered, and the prompt."""
    if asked.call.name == PLAN:
        return f"  {_GO}\n  [y/N] "
    options = _options(asked)
    if not options:
        return f"  {paint.dim('your answer; nothing leaves it unanswered')}\n  > "
    words = ", or other words" if asked.call.arguments.get("free_text", True) else ""
    return f"  {paint.dim(f'a number{words}; nothing leaves it unanswered')}\n  > "


def plan_answer(asked: ApprovalAsked, line: str | None) -> Answer:
    """What was typed, as an answer. Silence is no; to a plan, so are words that do not begin yes.

    To `ask_user` every word is an answer, also `no`; a number is the option that it stands before.
    """
    said = (line or "").strip()
    if asked.call.name == PLAN:
        return _agreed(said)
    if not said:
        return Answer(False)
    options = _options(asked)
    if said.isascii() and said.isdigit() and 1 <= int(said[:6]) <= len(options):
        return Answer(True, word=options[int(said[:6]) - 1])
    return Answer(True, word=said)


def _agreed(said: str) -> Answer:
    if found := _YES.fullmatch(said):
        return Answer(True, word=(found[1] or "").strip())
    if found := _NO.fullmatch(said):
        return Answer(False, word=(found[1] or "").strip())
    return Answer(False, word=said)


def _options(asked: ApprovalAsked) -> list[str]:
    found = asked.call.arguments.get("options", ())
    return [str(one) for one in found] if isinstance(found, list | tuple) else []


def _marked(text: str, paint: Paint, width: int) -> list[str]:
    """Text line by line, each with its mark; long lines are folded here and not by the terminal."""
    room = max(20, width - 6)
    lines = []
    fenced = False
    for line in wrapped(neutral(text.strip("\n")).expandtabs(4), room).split("\n"):
        fenced ^= line.lstrip().startswith("```")
        bold = paint.bold if _HEADING.match(line) and not fenced else str
        first, *rest = _folded(line, room)
        lines.append(f"  {paint.dim('│')} {bold(first)}".rstrip())
        lines += [f"  {paint.dim('│ ↪')} {bold(more)}" for more in rest]
    return lines


def _folded(line: str, width: int) -> list[str]:
    """The line in pieces that fit."""
    pieces, room = [""], width
    for char in line:
        room -= cells(char)
        if room < 0:
            pieces.append("")
            room = width - cells(char)
        pieces[-1] += char
    return pieces
