"""Ask the person at a plain terminal for approval. Silence denies.

Requests of one step that belong together are shown once. Every byte that would take effect is
shown, and what a typed line answers is decided here; what an answer grants is up to the engine.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from bridle.cli.line_reader import LineReader
from bridle.cli.printer import Printer
from bridle.cli.style import Paint, cells, cut
from bridle.cli.user_input import user_name
from bridle.config.paths import policy_file, state_folder
from bridle.errors import AgentError, UnknownApproval
from bridle.events import ApprovalAsked
from bridle.presentation import approvals
from bridle.presentation.approvals import ASK_USER, PLAN, Choice, Line, Sheet, has_rule
from bridle.presentation.calls import call_subject
from bridle.protocols.session import NO, YES, Answer, Conversation
from bridle.stores.reader import SessionFolder
from bridle.workspace.text import flat, quantity
from bridle.workspace.workspace import Workspace

ContentOf = Callable[[ApprovalAsked], str | None]
_PATIENCE = 2.0  # seconds
_LARGEST = 200_000  # bytes of a file that is compared; a larger one is shown as it will be
_COVERED = 3  # calls that a rule would have covered and that are named
_WITH_REMARK = re.compile(r"(?:y|yes)\s*,(.+)", re.IGNORECASE | re.DOTALL)
_NUMBERS = re.compile(r"\d{1,4}(?:\s*-\s*\d{1,4})?(?:[\s,]+\d{1,4}(?:\s*-\s*\d{1,4})?)*")
_PLAN_YES = re.compile(r"(?:y|yes)(?:[\s,.:;!]+(.*))?|go|ok", re.IGNORECASE | re.DOTALL)
_PLAN_NO = re.compile(r"(?:n|no)(?:[\s,.:;!]+(.*))?", re.IGNORECASE | re.DOTALL)


class TerminalApprover:
    """An approver that asks for one decision at a time, in the order of the requests.

    `session` is the one whose calls these are; without it, requests that belong together are
    shown one by one. `content_of` reads the file that a call would change, `preview` says what a
    proposed rule would cover: both are elsewhere if the session is.
    """

    def __init__(self, lines: LineReader, printer: Printer) -> None:
        self.lines = lines
        self.printer = printer
        self._lock = asyncio.Lock()
        self._shown: dict[str, asyncio.Event] = {}  # by `shown`: set when the request is recorded
        self._single: set[str] = set()  # groups whose requests are answered one by one
        self.session: Conversation | None = None
        self.content_of: ContentOf = file_content
        self.preview: Callable[[ApprovalAsked], Awaitable[str]] = self._preview_here
        self.unanswered = 0
        printer.on_asked = lambda asked: self._event(asked).set()

    def skip_wait(self, requests: Iterable[ApprovalAsked]) -> None:
        """Do not wait for what the screen shows before these: they were recorded earlier."""
        for asked in requests:
            self._event(asked).set()

    async def __call__(self, asked: ApprovalAsked) -> Answer:
        async with self._lock:
            await self._wait_until_shown(asked)
            group = self._group(asked)
            answers = await self._ask_together(group) if len(group) > 1 else None
            if answers is None:
                return replace(await self._ask_one(asked), by=user_name())
            await self._answer_others(group[1:], answers[1:])
            return replace(answers[0], by=user_name())

    async def _ask_one(self, asked: ApprovalAsked) -> Answer:
        width = self.printer.width
        request = full_text([asked], self.printer.paint, width, self.content_of)
        text = f"{request}\n{answer_prompt(asked, width)}"
        while True:
            answer = parse_answer(asked, await self._line(text, asked))
            if answer.scope != "rule":
                return answer
            if (answer_by_rule := await self._ask_rule(asked)) is not None:
                return answer_by_rule
            text = answer_prompt(asked, width)

    async def _ask_rule(self, asked: ApprovalAsked) -> Answer | None:
        """Return approval by a rule, once it was previewed; None if the rule is not written."""
        printer = self.printer
        if not has_rule(asked):
            printer.ask("  There is no rule that would allow this and nothing else.\n")
            return None
        try:
            preview = await self.preview(asked)
        except AgentError as error:
            printer.ask(f"  {flat(error.message)}\n  {printer.paint.dim(flat(error.hint))}\n")
            return None
        line = await self._line(f"{preview}\n  Save this rule? [y/N] ", asked)
        if line is not None and line.strip().lower() in ("y", "yes"):
            return Answer(True, "rule", rule=asked.proposal)
        return None if line is not None else NO

    async def _preview_here(self, asked: ApprovalAsked) -> str:
        session_id = self.session.id if self.session is not None else ""
        return await asyncio.to_thread(rule_preview, asked, session_id)

    async def _ask_together(self, group: Sequence[ApprovalAsked]) -> list[Answer] | None:
        """Return an answer to each request; None if they are to be answered one by one."""
        printer, count = self.printer, len(group)
        choices = group_prompt(group, printer.width)
        text = f"{full_text(group, printer.paint, printer.width, self.content_of)}\n{choices}"
        while True:
            line = await self._line(text, *group)
            if wants_each(line):
                self._single.add(group[0].group)
                return None
            if (answers := parse_group_answers(line, count)) is not None:
                return answers
            text = f"  Type numbers from 1 to {count}, or `each`.\n{choices}"

    async def _answer_others(
        self, requests: Sequence[ApprovalAsked], answers: Sequence[Answer]
    ) -> None:
        """Answer those that nobody has answered meanwhile."""
        assert self.session is not None
        for asked, answer in zip(requests, answers, strict=True):
            try:
                await self.session.answer(asked.call.id, answer, shown=asked.shown, by=user_name())
            except UnknownApproval as error:
                self.printer.line(self.printer.paint.dim(f"  {flat(error.message)}"))

    async def line(self, text: str) -> str | None:
        """Ask another question and return the line that is typed; None at the end of the input."""
        self.lines.discard()
        self.printer.ask(text)
        line = await self.lines.next()
        if line is None or not self.lines.is_terminal:
            self.printer.line("")  # nobody pressed Enter: the cursor still stands there
        return line

    async def _line(self, text: str, *requests: ApprovalAsked) -> str | None:
        self.lines.discard()
        self.printer.ask_approval(text, requests[0].shown)
        line = await self.lines.next()
        self.printer.end_approval()
        if line is None or not self.lines.is_terminal:
            self.printer.line("")  # nobody pressed Enter: the cursor still stands there
        if line is None:
            self.unanswered += len(requests)
        return line

    def _group(self, asked: ApprovalAsked) -> list[ApprovalAsked]:
        """Return the request and those that are open beside it and belong to it."""
        if self.session is None or not asked.group or asked.group in self._single:
            return [asked]
        if is_question(asked):
            return [asked]  # each has an answer of its own
        pending = self.session.history.pending.values()
        others = [other for other in pending if other.shown != asked.shown]
        return [asked, *(other for other in others if other.group == asked.group)]

    def _event(self, asked: ApprovalAsked) -> asyncio.Event:
        return self._shown.setdefault(asked.shown, asyncio.Event())

    async def _wait_until_shown(self, asked: ApprovalAsked) -> None:
        """Wait until the screen shows what was said before the request.

        The screen shows what is on the disk. If that cannot be written, the request comes anyway;
        so does one of a subagent's session, which has another log.
        """
        if self.session is not None and asked.shown not in self.session.history.pending:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._event(asked).wait()
        del self._shown[asked.shown]


# What is shown


def full_text(
    requests: Sequence[ApprovalAsked],
    paint: Paint,
    width: int = 200,
    content_of: ContentOf | None = None,
) -> str:
    """Return requests in full, with what the files hold now that they would change."""
    content_of = content_of or file_content
    if len(requests) > 1:
        return _group_text(requests, paint, width, content_of)
    (asked,) = requests
    head = f"{paint.yellow('?')} {paint.bold(approvals.approval_title(asked.call))}"
    sheet = Sheet(width, cells)
    arguments = asked.call.arguments
    if asked.call.name == PLAN:
        lines: Iterable[Line] = approvals.markdown_lines(str(arguments.get("plan", "")), sheet)
    elif asked.call.name == ASK_USER:
        lines = approvals.markdown_lines(str(arguments.get("question", "")), sheet)
    else:
        lines = approvals.approval_lines(asked, sheet, content_of(asked))
    text = "\n".join([head, *_painted(lines, paint)])
    options = approvals.options_of(asked) if asked.call.name == ASK_USER else []
    for number, option in enumerate(options, 1):
        text += f"\n  {paint.cyan(f'{number}.')} {flat(option)}"
    return text


def _group_text(
    group: Sequence[ApprovalAsked], paint: Paint, width: int, content_of: ContentOf
) -> str:
    """Return all of them, numbered. Reasons that they have in common are given once."""
    sheet, wide = Sheet(width, cells), Sheet(10_000, cells)
    are_alike = len({tuple(approvals.reason_part(asked, wide)) for asked in group}) == 1
    lines = [f"{paint.yellow('?')} {paint.bold(f'Allow these {len(group)} calls?')}"]
    if are_alike:
        lines += _painted(approvals.reason_part(group[0], sheet), paint)
    for number, asked in enumerate(group, 1):
        lines.append(f"  {paint.yellow(f'{number}.')} {paint.bold(flat(asked.call.name))}")
        if not are_alike:
            lines += _painted(approvals.reason_part(asked, sheet), paint)
        lines += _painted(approvals.call_part(asked, sheet, content_of(asked)), paint)
        lines += _painted(approvals.history_part(asked, sheet), paint)
    return "\n".join(lines)


def answer_prompt(asked: ApprovalAsked, width: int = 200) -> str:
    """Return what can be answered to a request, and the prompt."""
    if asked.call.name == PLAN:
        keep = "or say what is wrong with it"
        choices = f"[y] Yes  [y WORDS] Yes, with changes  [n] Keep planning  {keep}"
        return f"  {choices}\n  [y/N] "
    if asked.call.name == ASK_USER:
        if not approvals.options_of(asked):
            return "  Type your answer; an empty line leaves it unanswered.\n  > "
        other = ", or other words" if asked.call.arguments.get("free_text", True) else ""
        return f"  Type a number{other}; an empty line leaves it unanswered.\n  > "
    words = 'or type why not, or what to do instead, to deny and say why; "y, …" allows with a note'
    return _prompt(approvals.approval_choices(asked), words, width)


def group_prompt(group: Sequence[ApprovalAsked], width: int = 200) -> str:
    """Return what can be answered to several requests, and the prompt."""
    *allow, deny, deny_why = approvals.group_choices(group)
    some = (Choice("1,2", "Allow only these"), Choice("each", "One by one"))
    words = "or type why not, or what to do instead, to deny all and say why"
    return _prompt((*allow, *some, deny, deny_why), words, width)


def _prompt(choices: Iterable[Choice], words: str, width: int) -> str:
    """Return keys with their labels, a sentence about all other input, and the prompt."""
    keyed = [choice for choice in choices if choice.key != "w"]  # a reason is typed at once
    keys = "  ".join(f"[{choice.key}] {choice.label}" for choice in keyed)
    prompt = "/".join("N" if choice.key == "n" else choice.key for choice in keyed)
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


def _painted(lines: Iterable[Line], paint: Paint) -> Iterator[str]:
    colours: dict[str, Callable[[str], str]] = {
        "note": paint.dim,
        "label": paint.dim,
        "command": paint.bold,
        "heading": paint.bold,
        "plus": paint.green,
        "minus": paint.red,
        "hunk": paint.cyan,
    }
    for line in lines:
        text = colours.get(line.kind, str)(line.text)
        mark = f"{paint.dim(line.mark)} " if line.text else paint.dim(line.mark)
        yield f"  {mark}{text}" if line.mark else f"  {text}"


def is_question(asked: ApprovalAsked) -> bool:
    """Return whether it is a plan or a question, to which yes and no are not all answers."""
    return asked.call.name in (PLAN, ASK_USER)


def group_requests(requests: Iterable[ApprovalAsked]) -> list[list[ApprovalAsked]]:
    """Return the requests of a session, in one list those that belong together."""
    groups: dict[str, list[ApprovalAsked]] = {}
    for asked in requests:
        groups.setdefault(asked.group or asked.shown, []).append(asked)
    return list(groups.values())


# What is answered


def parse_answer(asked: ApprovalAsked, line: str | None) -> Answer:
    """Return the answer that was typed. Silence denies; so do other words, which are passed on.

    To `ask_user` all words are an answer, also `no`; a number is the option with that number.
    """
    text = (line or "").strip()
    if asked.call.name == PLAN:
        return _parse_plan_answer(text)
    if asked.call.name == ASK_USER:
        options = approvals.options_of(asked)
        if text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= len(options):
            text = options[int(text[:6]) - 1]
        return Answer(bool(text), word=text)
    return _parse_call_answer(text)


def _parse_call_answer(text: str) -> Answer:
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


def _parse_plan_answer(text: str) -> Answer:
    """Words that do not begin with yes are a no."""
    if match := _PLAN_YES.fullmatch(text):
        return Answer(True, word=(match[1] or "").strip())
    if match := _PLAN_NO.fullmatch(text):
        return Answer(False, word=(match[1] or "").strip())
    return Answer(False, word=text)


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
    answer = _parse_call_answer(text)
    return None if answer.scope == "rule" else [answer] * count


def wants_each(line: str | None) -> bool:
    """Return whether the requests are to be answered one by one."""
    return (line or "").strip().lower() in ("e", "each")


# The rule that an approval would add


def rule_preview(asked: ApprovalAsked, session_id: str) -> str:
    """Return the proposed rule, what it would have covered, and its file. Raise `ConfigError`."""
    from bridle.config.policy import with_rule  # it reads YAML
    from bridle.runtime.dry_run import root_of

    path = policy_file(os.environ)
    folder = SessionFolder(state_folder(os.environ))
    root = os.path.realpath(root_of(session_id, folder) or asked.cwd)
    # a file that is bad is refused now, and not after the yes
    with_rule(path, asked.proposal, where=root)
    rule = f"{asked.proposal}, in this folder alone: {root}"
    lines = [rule, covered_line(asked.proposal, session_id, folder), f"into {path}"]
    return "\n".join(f"  {flat(line)}" for line in lines)


def covered_line(rule: str, session_id: str, folder: SessionFolder) -> str:
    """Return how many of the newest calls in that session's workspace the rule would cover."""
    from bridle.engine.grants import covered_calls
    from bridle.policy import parse_rule
    from bridle.runtime.dry_run import past_calls, root_of

    past = past_calls(session_id, folder)
    if not past:
        return "There are no earlier calls in this folder to compare it with."
    rule_here = replace(parse_rule(rule), where=root_of(session_id, folder))
    covered = [
        cut(f"{call.name} {flat(call_subject(call))}".strip(), 60)
        for call in covered_calls(rule_here, past)
    ]
    of = f"of the last {quantity(len(past), 'call')} in this folder"
    if not covered:
        return f"It would have covered none {of}"
    counts = {name: covered.count(name) for name in covered}
    names = [f"{name} ×{count}" if count > 1 else name for name, count in counts.items()]
    more = f" and {len(names) - _COVERED} more" if len(names) > _COVERED else ""
    return f"It would have covered {len(covered)} {of}: {', '.join(names[:_COVERED])}{more}"


def file_content(asked: ApprovalAsked) -> str | None:
    """Return what the file holds now that a call would change; None if it is not known."""
    path = asked.call.arguments.get("path")
    if not isinstance(path, str) or not {"content", "old", "edits"} & asked.call.arguments.keys():
        return None
    try:
        files = Workspace(Path(asked.cwd))
        content = files.read(path, _LARGEST + 1) if files.exists(path) else None
        return content.decode() if content is not None and len(content) <= _LARGEST else None
    except (AgentError, UnicodeDecodeError):
        return None
