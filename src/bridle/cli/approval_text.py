"""Approval requests as text in a terminal, and what a line that was typed answers to them. Pure.

Every byte that would take effect is shown: nothing is cut, and control characters are visible.
Long lines are folded here, each with its mark: no text of a call can pass for the request's own.
A plan to agree to and the questions of `ask_user` are requests too, with words for an answer.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from bridle.cli.style import Paint, cells, wrapped
from bridle.events import ApprovalAsked
from bridle.presentation import approvals
from bridle.presentation.approvals import Line, Sheet, has_rule, session_grant_text
from bridle.protocols.session import NO, YES, Answer
from bridle.workspace.text import flat, neutral

PLAN, ASK_USER = "exit_plan_mode", "ask_user"
_WITH_REMARK = re.compile(r"(?:y|yes)\s*,(.+)", re.IGNORECASE | re.DOTALL)
_NUMBERS = re.compile(r"\d{1,4}(?:\s*-\s*\d{1,4})?(?:[\s,]+\d{1,4}(?:\s*-\s*\d{1,4})?)*")
_PLAN_YES = re.compile(r"(?:y|yes)(?:[\s,.:;!]+(.*))?|go|ok", re.IGNORECASE | re.DOTALL)
_PLAN_NO = re.compile(r"(?:n|no)(?:[\s,.:;!]+(.*))?", re.IGNORECASE | re.DOTALL)
_HEADING = re.compile(r"#{1,6} ")


# One call


def request_text(
    asked: ApprovalAsked, paint: Paint, width: int = 200, before: str | None = None
) -> str:
    """Return a request in full. `before` is what a file holds now that the call would change."""
    head = f"{paint.yellow('?')} {paint.bold(approvals.approval_title(asked.call))}"
    lines = approvals.approval_lines(asked, Sheet(width, cells), before)
    return "\n".join([head, *_painted(lines, paint)])


def request_choices(asked: ApprovalAsked, width: int = 200) -> str:
    """Return what can be answered, and the prompt."""
    choices = {"y": "allow once"}
    if not asked.once_only:
        choices["s"] = session_grant_text(asked)
    if has_rule(asked):
        choices["r"] = "allow by this rule"
    words = 'or type what to do instead, which denies it; "y, …" allows it with a remark'
    return _choices({**choices, "n": "deny"}, words, width)


def parse_answer(line: str | None) -> Answer:
    """Return the answer that was typed. Silence denies; so do other words, which are passed on."""
    text = (line or "").strip()
    match text.lower():
        case "y" | "yes":
            return Answer(True)
        case "s" | "a" | "always":
            return Answer(True, "session")
        case "r" | "rule":
            return Answer(True, "rule")
        case "" | "n" | "no":
            return Answer(False)
    if (yes := _WITH_REMARK.fullmatch(text)) is not None and (word := yes[1].strip()):
        return Answer(True, word=word)
    return Answer(False, word=text.removeprefix("n ").removeprefix("no, ").strip())


def _painted(lines: Iterable[Line], paint: Paint) -> Iterator[str]:
    colours: dict[str, Callable[[str], str]] = {
        "note": paint.dim,
        "label": paint.dim,
        "command": paint.bold,
        "plus": paint.green,
        "minus": paint.red,
        "hunk": paint.cyan,
    }
    for line in lines:
        text = colours.get(line.kind, str)(line.text)
        yield f"  {paint.dim(line.mark)} {text}" if line.mark else f"  {text}"


def _choices(choices: dict[str, str], words: str, width: int) -> str:
    """Return keys with their meaning, a sentence about all other input, and the prompt."""
    keys = "  ".join(f"[{key}] {meaning}" for key, meaning in choices.items())
    prompt = "/".join("N" if key == "n" else key for key in choices)
    lines = [*_filled(keys, width - 2, "  "), *_filled(words, width - 2, " ")]
    return "\n".join(f"  {line}" for line in [*lines, f"[{prompt}] "])


def _filled(text: str, width: int, separator: str) -> list[str]:
    lines = [""]
    for piece in text.split(separator):
        longer = f"{lines[-1]}{separator}{piece}" if lines[-1] else piece
        if cells(longer) > width and lines[-1]:
            lines.append(piece)
        else:
            lines[-1] = longer
    return lines


# Several calls of one step, which are shown and answered together


def group_requests(requests: Iterable[ApprovalAsked]) -> list[list[ApprovalAsked]]:
    """Return the requests of a session, in one list those that belong together."""
    groups: dict[str, list[ApprovalAsked]] = {}
    for asked in requests:
        groups.setdefault(asked.group or asked.shown, []).append(asked)
    return list(groups.values())


def group_text(
    group: Sequence[ApprovalAsked], paint: Paint, width: int, befores: Sequence[str | None]
) -> str:
    """Return all of them, numbered. Reasons that they have in common are given once."""
    sheet = Sheet(width, cells)
    reasons = [
        tuple(_painted(approvals.reason_part(asked, Sheet(10_000, cells)), Paint(False)))
        for asked in group
    ]
    are_alike = len(set(reasons)) == 1
    lines = [f"{paint.yellow('?')} {paint.bold(f'Allow these {len(group)} calls?')}"]
    if are_alike:
        lines += _painted(approvals.reason_part(group[0], sheet), paint)
    for number, (asked, before) in enumerate(zip(group, befores, strict=True), 1):
        lines.append(f"  {paint.yellow(f'{number}.')} {paint.bold(flat(asked.call.name))}")
        if not are_alike:
            lines += _painted(approvals.reason_part(asked, sheet), paint)
        lines += _painted(approvals.call_part(asked, sheet, before), paint)
        lines += _painted(approvals.history_part(asked, sheet), paint)
    return "\n".join(lines)


def group_choices(group: Sequence[ApprovalAsked], width: int = 200) -> str:
    """Return what can be answered to all of them, and the prompt."""
    choices = {"y": "allow all once"}
    if not any(asked.once_only for asked in group):
        choices["s"] = session_grant_text(group[0])
    choices |= {"1,2": "only these", "each": "one by one", "n": "deny all"}
    return _choices(choices, "or type what to do instead, which denies all of them", width)


def parse_group_answers(line: str | None, count: int) -> list[Answer] | None:
    """Return an answer for each of them; None if the line is not a possible answer."""
    text = (line or "").strip()
    if _NUMBERS.fullmatch(text):
        chosen: set[int] = set()
        for first, last in re.findall(r"(\d+)(?:\s*-\s*(\d+))?", text):
            chosen.update(range(int(first), int(last or first) + 1))
        if not all(1 <= number <= count for number in chosen):
            return None
        return [YES if number in chosen else NO for number in range(1, count + 1)]
    answer = parse_answer(line)
    return None if answer.scope == "rule" else [answer] * count


def wants_each(line: str | None) -> bool:
    """Return whether the requests are to be answered one by one."""
    return (line or "").strip().lower() in ("e", "each")


# Plans and questions


def is_question(asked: ApprovalAsked) -> bool:
    """Return whether it is a plan or a question, to which yes and no are not all answers."""
    return asked.call.name in (PLAN, ASK_USER)


def question_text(asked: ApprovalAsked, paint: Paint, width: int = 200) -> str:
    """Return a plan, or a question and its options.

    A plan is shown whole, as the Markdown that it is.
    """
    arguments = asked.call.arguments
    if asked.call.name == PLAN:
        head = f"{paint.yellow('?')} {paint.bold('Go ahead with this plan?')}"
        return "\n".join([head, *_marked_lines(str(arguments.get("plan", "")), paint, width)])
    head = f"{paint.yellow('?')} {paint.bold('A question for you')}"
    lines = [head, *_marked_lines(str(arguments.get("question", "")), paint, width)]
    for number, option in enumerate(_options(asked), 1):
        lines.append(f"  {paint.cyan(f'{number}.')} {flat(option)}")
    return "\n".join(lines)


def question_choices(asked: ApprovalAsked, paint: Paint) -> str:
    """Return what can be answered to a plan or a question, and the prompt."""
    if asked.call.name == PLAN:
        choices = "[y] yes  [y WORDS] yes, with changes  [n] no  or say what is wrong with it"
        return f"  {choices}\n  [y/N] "
    if not _options(asked):
        return f"  {paint.dim('your answer; nothing leaves it unanswered')}\n  > "
    words = ", or other words" if asked.call.arguments.get("free_text", True) else ""
    return f"  {paint.dim(f'a number{words}; nothing leaves it unanswered')}\n  > "


def parse_question_answer(asked: ApprovalAsked, line: str | None) -> Answer:
    """Return the answer to a plan or a question. Silence is no.

    To a plan, so are words that do not begin with yes. To `ask_user` all words are an answer, also
    `no`; a number is the option with that number.
    """
    text = (line or "").strip()
    if asked.call.name == PLAN:
        if match := _PLAN_YES.fullmatch(text):
            return Answer(True, word=(match[1] or "").strip())
        if match := _PLAN_NO.fullmatch(text):
            return Answer(False, word=(match[1] or "").strip())
        return Answer(False, word=text)
    if not text:
        return Answer(False)
    options = _options(asked)
    if text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= len(options):
        return Answer(True, word=options[int(text[:6]) - 1])
    return Answer(True, word=text)


def _options(asked: ApprovalAsked) -> list[str]:
    options = asked.call.arguments.get("options", ())
    return [str(option) for option in options] if isinstance(options, list | tuple) else []


def _marked_lines(text: str, paint: Paint, width: int) -> list[str]:
    """Return the text with a mark before each line, folded here and not by the terminal."""
    room = max(20, width - 6)
    lines = []
    is_fenced = False
    for line in wrapped(neutral(text.strip("\n")).expandtabs(4), room).split("\n"):
        is_fenced ^= line.lstrip().startswith("```")
        bold = paint.bold if _HEADING.match(line) and not is_fenced else str
        first, *rest = _folded(line, room)
        lines.append(f"  {paint.dim('│')} {bold(first)}".rstrip())
        lines += [f"  {paint.dim('│ ↪')} {bold(more)}" for more in rest]
    return lines


def _folded(line: str, width: int) -> list[str]:
    """Return the line in pieces that fit."""
    pieces, room = [""], width
    for char in line:
        room -= cells(char)
        if room < 0:
            pieces.append("")
            room = width - cells(char)
        pieces[-1] += char
    return pieces
