"""Puts the gate's questions to the person at the terminal. The default is no, and so is silence.

Questions of one step that belong together are put once. How a question reads is other modules'
business; what is made of the answers is the engine's.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from bridle.cli import plan_question, together
from bridle.cli.lines import Lines
from bridle.cli.question import choices, has_rule, question, to_answer
from bridle.cli.screen import Screen
from bridle.cli.style import Paint
from bridle.cli.user_input import user_name
from bridle.config.paths import policy_file, state_folder
from bridle.errors import AgentError, UnknownApproval
from bridle.events import ApprovalAsked
from bridle.protocols.session import NO, Answer, Conversation
from bridle.workspace.text import flat
from bridle.workspace.workspace import Workspace

Current = Callable[[ApprovalAsked], str | None]
_PATIENCE = 2.0  # seconds
_LARGEST = 200_000  # bytes of a file that is compared; a larger one is shown as it will be


class Asker:
    """An approver: asks one question at a time, in the order in which they come.

    `session` is the one that asks; without it, questions that belong together come one by one.
    """

    def __init__(self, lines: Lines, screen: Screen) -> None:
        self.lines = lines
        self.screen = screen
        self._turn = asyncio.Lock()
        self._shown: dict[str, asyncio.Event] = {}  # by what is shown
        self._apart: set[str] = set()  # groups that are walked through one by one
        self.session: Conversation | None = None
        self.current: Current = current  # where the files lie that a call would change
        self.previewed: Callable[[ApprovalAsked], Awaitable[str]] = self._previewed
        self.unanswered = 0
        screen.on_asked = lambda asked: self._event(asked).set()

    def expect_nothing(self, standing: Iterable[ApprovalAsked]) -> None:
        """These questions stand in the log from earlier: nothing is said before them now."""
        for asked in standing:
            self._event(asked).set()

    async def __call__(self, asked: ApprovalAsked) -> Answer:
        async with self._turn:
            await self._reached(asked)
            kin = self._kin(asked)
            found = await self._together(kin) if len(kin) > 1 else None
            if found is None:
                return replace(await self._alone(asked), by=user_name())
            await self._spread(kin[1:], found[1:])
            return replace(found[0], by=user_name())

    async def _alone(self, asked: ApprovalAsked) -> Answer:
        """One question, until there is an answer to it."""
        width = self.screen.width
        shown = shown_text([asked], self.screen.paint, width, self.current)
        text = f"{shown}\n{choices_of(asked, width)}"
        while True:
            line = await self._line(text, asked)
            answer = answer_of(asked, line)
            if answer.scope != "rule":
                return answer
            if (ruled := await self._ruled(asked)) is not None:
                return ruled
            text = choices_of(asked, width)

    async def _ruled(self, asked: ApprovalAsked) -> Answer | None:
        """A yes as a rule, once it was looked at; None: it was not wanted, or cannot be."""
        screen = self.screen
        if not has_rule(asked):
            screen.ask("  no rule would cover this and nothing else\n")
            return None
        try:
            said = await self.previewed(asked)
        except AgentError as error:
            screen.ask(f"  {flat(error.message)}\n  {screen.paint.dim(flat(error.hint))}\n")
            return None
        line = await self._line(f"{said}\n  write this rule? [y/N] ", asked)
        if line is not None and line.strip().lower() in ("y", "yes"):
            return Answer(True, "rule", rule=asked.proposal)
        return None if line is not None else NO

    async def _previewed(self, asked: ApprovalAsked) -> str:
        session_id = self.session.id if self.session is not None else ""
        return await asyncio.to_thread(previewed, asked, session_id)

    async def _together(self, kin: Sequence[ApprovalAsked]) -> list[Answer] | None:
        """Several questions, until each has an answer; None: they are wanted one by one."""
        screen, count = self.screen, len(kin)
        offer = together.choices(kin, screen.width)
        text = f"{shown_text(kin, screen.paint, screen.width, self.current)}\n{offer}"
        while True:
            line = await self._line(text, *kin)
            if together.wants_each(line):
                self._apart.add(kin[0].group)
                return None
            if (found := together.to_answers(line, count)) is not None:
                return found
            text = f"  there are {count}: name some of them, or say `each`\n{offer}"

    async def _spread(self, kin: Sequence[ApprovalAsked], answers: Sequence[Answer]) -> None:
        """Say what was said of the others; what somebody has said of them before stands."""
        assert self.session is not None
        for asked, answer in zip(kin, answers, strict=True):
            try:
                await self.session.answer(asked.call.id, answer, shown=asked.shown, by=user_name())
            except UnknownApproval as error:
                self.screen.line(self.screen.paint.dim(f"  {flat(error.message)}"))

    async def line(self, text: str) -> str | None:
        """What is typed behind a question of our own; None where nobody is there."""
        self.lines.discard()
        self.screen.ask(text)
        line = await self.lines.next()
        if line is None or not self.lines.is_terminal:
            self.screen.line("")  # nobody pressed Enter: the cursor still stands there
        return line

    async def _line(self, text: str, *asked: ApprovalAsked) -> str | None:
        """What is typed behind the question; None where nobody is there."""
        self.lines.discard()
        self.screen.ask_approval(text, asked[0].shown)
        line = await self.lines.next()
        self.screen.end_approval()
        if line is None or not self.lines.is_terminal:
            self.screen.line("")  # nobody pressed Enter: the cursor still stands there
        if line is None:
            self.unanswered += len(asked)
        return line

    def _kin(self, asked: ApprovalAsked) -> list[ApprovalAsked]:
        """The question and those that stand beside it and belong to it."""
        if self.session is None or not asked.group or asked.group in self._apart:
            return [asked]
        if plan_question.is_question(asked):
            return [asked]  # each has an answer of its own
        standing = self.session.history.pending.values()
        others = [one for one in standing if one.group == asked.group and one.shown != asked.shown]
        return [asked, *others]

    def _event(self, asked: ApprovalAsked) -> asyncio.Event:
        return self._shown.setdefault(asked.shown, asyncio.Event())

    async def _reached(self, asked: ApprovalAsked) -> None:
        """Until everything said before the question stands on the screen.

        What is shown has been written first. If it cannot be written, the question comes anyway;
        and so does one of a child session, which is in another log.
        """
        if self.session is not None and asked.shown not in self.session.history.pending:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._event(asked).wait()
        del self._shown[asked.shown]


def shown_text(
    asked: Sequence[ApprovalAsked], paint: Paint, width: int, held: "Current | None" = None
) -> str:
    """Questions in full, with what the files hold now that they would change."""
    held = held or current
    if len(asked) > 1:
        return together.questions(asked, paint, width, [held(one) for one in asked])
    (one,) = asked
    if plan_question.is_question(one):
        return plan_question.told(one, paint, width)
    return question(one, paint, width, held(one))


def choices_of(asked: ApprovalAsked, width: int) -> str:
    """What can be said to a question, and the prompt."""
    if plan_question.is_question(asked):
        return plan_question.choices(asked, Paint(False))
    return choices(asked, width)


def answer_of(asked: ApprovalAsked, line: str | None) -> Answer:
    """What was typed, as an answer to that question."""
    if plan_question.is_question(asked):
        return plan_question.plan_answer(asked, line)
    return to_answer(line)


def previewed(asked: ApprovalAsked, session_id: str) -> str:
    """The rule, what it would have covered, and where it goes. Raise `ConfigError`."""
    from bridle.cli.past import covered_line
    from bridle.config.policy import with_rule
    from bridle.runtime.dry_run import root_of
    from bridle.stores.reader import SessionFolder

    path = policy_file(os.environ)
    folder = SessionFolder(state_folder(os.environ))
    root = os.path.realpath(root_of(session_id, folder) or asked.cwd)
    # a file that is bad is refused now, and not after the yes
    with_rule(path, asked.proposal, where=root)
    rule = f"{asked.proposal}, in this folder alone: {root}"
    lines = [rule, covered_line(asked.proposal, session_id, folder), f"into {path}"]
    return "\n".join(f"  {flat(line)}" for line in lines)


def current(asked: ApprovalAsked) -> str | None:
    """What the file that a call would change holds now."""
    path = asked.call.arguments.get("path")
    if not isinstance(path, str) or not {"content", "old", "edits"} & asked.call.arguments.keys():
        return None
    try:
        files = Workspace(Path(asked.cwd))
        held = files.read(path, _LARGEST + 1) if files.exists(path) else None
        return held.decode() if held is not None and len(held) <= _LARGEST else None
    except (AgentError, UnicodeDecodeError):
        return None
