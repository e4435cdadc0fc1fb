"""Asks the person at the terminal for approval. Silence denies.

Requests of one step that belong together are shown once. Their text is that of `approval_text.py`;
what an answer grants is the engine's.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from bridle.cli import approval_text
from bridle.cli.event_lines import subject_of
from bridle.cli.lines import Lines
from bridle.cli.screen import Screen
from bridle.cli.style import Paint, cut
from bridle.cli.user_input import user_name
from bridle.config.paths import policy_file, state_folder
from bridle.errors import AgentError, UnknownApproval
from bridle.events import ApprovalAsked
from bridle.presentation.approvals import has_rule
from bridle.protocols.session import NO, Answer, Conversation
from bridle.stores.reader import SessionFolder
from bridle.workspace.text import flat, quantity
from bridle.workspace.workspace import Workspace

ContentOf = Callable[[ApprovalAsked], str | None]
_PATIENCE = 2.0  # seconds
_LARGEST = 200_000  # bytes of a file that is compared; a larger one is shown as it will be
_COVERED = 3  # calls that a rule would have covered and that are named


class TerminalApprover:
    """An approver that asks for one decision at a time, in the order of the requests.

    `session` is the one whose calls these are; without it, requests that belong together are
    shown one by one. `content_of` reads the file that a call would change, `preview` says what a
    proposed rule would cover: both are elsewhere if the session is.
    """

    def __init__(self, lines: Lines, screen: Screen) -> None:
        self.lines = lines
        self.screen = screen
        self._lock = asyncio.Lock()
        self._shown: dict[str, asyncio.Event] = {}  # by `shown`: set when the request is recorded
        self._single: set[str] = set()  # groups whose requests are answered one by one
        self.session: Conversation | None = None
        self.content_of: ContentOf = file_content
        self.preview: Callable[[ApprovalAsked], Awaitable[str]] = self._preview_here
        self.unanswered = 0
        screen.on_asked = lambda asked: self._event(asked).set()

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
        width = self.screen.width
        request = full_text([asked], self.screen.paint, width, self.content_of)
        text = f"{request}\n{choices_of(asked, width)}"
        while True:
            answer = parse_answer(asked, await self._line(text, asked))
            if answer.scope != "rule":
                return answer
            if (answer_by_rule := await self._ask_rule(asked)) is not None:
                return answer_by_rule
            text = choices_of(asked, width)

    async def _ask_rule(self, asked: ApprovalAsked) -> Answer | None:
        """Return approval by a rule, once it was previewed; None if the rule is not written."""
        screen = self.screen
        if not has_rule(asked):
            screen.ask("  no rule would cover this and nothing else\n")
            return None
        try:
            preview = await self.preview(asked)
        except AgentError as error:
            screen.ask(f"  {flat(error.message)}\n  {screen.paint.dim(flat(error.hint))}\n")
            return None
        line = await self._line(f"{preview}\n  write this rule? [y/N] ", asked)
        if line is not None and line.strip().lower() in ("y", "yes"):
            return Answer(True, "rule", rule=asked.proposal)
        return None if line is not None else NO

    async def _preview_here(self, asked: ApprovalAsked) -> str:
        session_id = self.session.id if self.session is not None else ""
        return await asyncio.to_thread(rule_preview, asked, session_id)

    async def _ask_together(self, group: Sequence[ApprovalAsked]) -> list[Answer] | None:
        """Return an answer to each request; None if they are to be answered one by one."""
        screen, count = self.screen, len(group)
        choices = approval_text.group_choices(group, screen.width)
        text = f"{full_text(group, screen.paint, screen.width, self.content_of)}\n{choices}"
        while True:
            line = await self._line(text, *group)
            if approval_text.wants_each(line):
                self._single.add(group[0].group)
                return None
            if (answers := approval_text.parse_group_answers(line, count)) is not None:
                return answers
            text = f"  there are {count}: name some of them, or say `each`\n{choices}"

    async def _answer_others(
        self, requests: Sequence[ApprovalAsked], answers: Sequence[Answer]
    ) -> None:
        """Answer those that nobody has answered meanwhile."""
        assert self.session is not None
        for asked, answer in zip(requests, answers, strict=True):
            try:
                await self.session.answer(asked.call.id, answer, shown=asked.shown, by=user_name())
            except UnknownApproval as error:
                self.screen.line(self.screen.paint.dim(f"  {flat(error.message)}"))

    async def line(self, text: str) -> str | None:
        """Ask another question and return the line that is typed; None at the end of the input."""
        self.lines.discard()
        self.screen.ask(text)
        line = await self.lines.next()
        if line is None or not self.lines.is_terminal:
            self.screen.line("")  # nobody pressed Enter: the cursor still stands there
        return line

    async def _line(self, text: str, *requests: ApprovalAsked) -> str | None:
        self.lines.discard()
        self.screen.ask_approval(text, requests[0].shown)
        line = await self.lines.next()
        self.screen.end_approval()
        if line is None or not self.lines.is_terminal:
            self.screen.line("")  # nobody pressed Enter: the cursor still stands there
        if line is None:
            self.unanswered += len(requests)
        return line

    def _group(self, asked: ApprovalAsked) -> list[ApprovalAsked]:
        """Return the request and those that are open beside it and belong to it."""
        if self.session is None or not asked.group or asked.group in self._single:
            return [asked]
        if approval_text.is_question(asked):
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


def full_text(
    requests: Sequence[ApprovalAsked],
    paint: Paint,
    width: int,
    content_of: ContentOf | None = None,
) -> str:
    """Return requests in full, with what the files hold now that they would change."""
    content_of = content_of or file_content
    if len(requests) > 1:
        contents = [content_of(asked) for asked in requests]
        return approval_text.group_text(requests, paint, width, contents)
    (asked,) = requests
    if approval_text.is_question(asked):
        return approval_text.question_text(asked, paint, width)
    return approval_text.request_text(asked, paint, width, content_of(asked))


def choices_of(asked: ApprovalAsked, width: int) -> str:
    """Return what can be answered to a request, and the prompt."""
    if approval_text.is_question(asked):
        return approval_text.question_choices(asked, Paint(False))
    return approval_text.request_choices(asked, width)


def parse_answer(asked: ApprovalAsked, line: str | None) -> Answer:
    """Return what was typed as an answer to the request."""
    if approval_text.is_question(asked):
        return approval_text.parse_question_answer(asked, line)
    return approval_text.parse_answer(line)


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
        return "there are no earlier calls in this folder to hold it against"
    rule_here = replace(parse_rule(rule), where=root_of(session_id, folder))
    covered = [
        cut(f"{call.name} {subject_of(call)}".strip(), 60)
        for call in covered_calls(rule_here, past)
    ]
    of = f"of the last {quantity(len(past), 'call')} in this folder"
    if not covered:
        return f"it would have covered none {of}"
    counts = {name: covered.count(name) for name in covered}
    names = [f"{name} ×{count}" if count > 1 else name for name, count in counts.items()]
    more = f" and {len(names) - _COVERED} more" if len(names) > _COVERED else ""
    return f"it would have covered {len(covered)} {of}: {', '.join(names[:_COVERED])}{more}"


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
