"""The REPL as slash commands know it: everything is printed, and questions are lines of input."""

import re
import sys
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from bridle.cli.approval_prompt import answer_prompt, full_text, parse_answer
from bridle.cli.commands.sessions.list import local_time
from bridle.cli.exit_codes import complain
from bridle.cli.repl.session import ReplSession
from bridle.cli.style import Paint, cells, cut, paint_for, wrapped
from bridle.cli.user_input import check_text
from bridle.errors import AgentError
from bridle.presentation.approvals import Sheet
from bridle.presentation.commands import Command
from bridle.protocols.session import Answer
from bridle.protocols.session_values import SessionInfo
from bridle.tui.session_backend import Asked, SessionBackend, display_state
from bridle.tui.slash.commands import run_command
from bridle.tui.slash.interaction import Items, Lines, Severity
from bridle.workspace.text import flat, neutral

T = TypeVar("T")
_NEWEST = 10  # sessions that are listed
_OTHERS = 15  # other models that are listed
_COLUMN = re.compile(r" *\S.*?  +(?=\S)")  # up to where the second column of a table begins


class ReplInteraction:
    """A REPL's session, as slash commands know it."""

    is_screen = False

    def __init__(self, repl: ReplSession) -> None:
        self._repl = repl
        self._printer = repl.printer
        self.is_left = False

    async def run(self, line: str) -> bool:
        """Run the command of a line; return False to leave. Raise `AgentError`."""
        await run_command(self, check_text(line, "the line"))
        return not self.is_left

    @property
    def backend(self) -> SessionBackend:
        """Where the sessions are."""
        return self._repl.backend

    def user_commands(self) -> Sequence[Command]:
        """Return the user's own commands."""
        return self._repl.backend.commands()

    def keys(self) -> Lines:
        """Return nothing: the REPL has no keys of its own."""
        return ()

    def show(self, text: str, severity: Severity = "information") -> None:
        """Print a line beside the answers."""
        text = wrapped(flat(text), max(20, self._printer.width))
        self._printer.line(self._printer.paint.dim(text))

    def show_progress(self, text: str) -> None:
        """Print nothing: the lines stay."""

    async def show_lines(self, title: str, lines: Lines) -> None:
        """Print lines, folded below their second column."""
        for text, kind in lines:
            self._print(text, kind)

    async def choose(self, title: str, items: Items, *, now: str = "", empty: str = "") -> None:
        """List what there is; at a pipe, only the current one."""
        paint = self._printer.paint
        if now:
            self._printer.line(flat(now))
            if not self._repl.approver.lines.is_terminal:
                return
        found = [item for item in await items() if not (now and (item.chosen or item.why_not))]
        for item in found[:_OTHERS] if now else found:
            name = item.key.partition(" ")[0]
            label = "" if item.label == name else f"  {flat(item.label)}"
            about = f"  {paint.dim(flat(item.about))}" if item.about else ""
            self._printer.line(f"  {paint.cyan(flat(name))}{label}{about}")
        if not found and not now:
            self.show(empty)

    async def choose_session(self, query: str) -> None:
        """List the newest sessions that match."""
        sessions = await self.backend.sessions(query, _NEWEST)
        for session in sessions:
            self._printer.line(self._session_line(session))
        if not sessions:
            self.show("No session matches." if query else "There are no sessions yet.")

    async def ask_text(self, title: str, value: str = "") -> None:
        """Ask nothing: what is needed is typed behind the command."""

    async def confirm(
        self, title: str, question: str, lines: Lines = (), *, danger: bool = False
    ) -> bool:
        """Print the lines, and read a line of input.

        Lines of files stand behind a bar, so that none can pass for the question.
        """
        sheet, dim = Sheet(self._printer.width, cells), self._printer.paint.dim
        for text, kind in lines:
            if kind in ("head", "warning"):
                self._print(text, kind)
                continue
            for line in sheet.barred(text, kind):
                self._printer.line(f"  {dim(line.mark)} {self._painted(line.text, kind)}".rstrip())
        typed = await self._repl.approver.line(f"  {flat(question)} [y/N] ")
        return typed is not None and typed.strip().lower() in ("y", "yes")

    async def switch(self, change: Awaitable[T]) -> T:
        """Await what may lead to another session, and watch that one then."""
        return await self._repl.switch(change)

    def update(self) -> None:
        """Do nothing: there is no status bar."""

    async def send(self, text: str) -> None:
        """Send a prompt, and show its turn."""
        await self._repl.send(check_text(text, "the command"))

    async def resume(self) -> None:
        """Resume what was left behind in this session."""
        await self._repl.resume()

    def restore_input(self, text: str) -> None:
        """Do nothing: a line cannot be put back."""

    def prompt_of_turn(self, turns: int) -> str:
        """Return nothing: no prompt can be put back."""
        return ""

    def go_to(self, seq: int, kind: str) -> None:
        """Do nothing: lines do not scroll."""

    def set_theme(self, name: str) -> None:
        """Use the terminal's colours, or none."""
        self._printer.paint = Paint(False) if name == "plain" else paint_for(sys.stderr)

    async def answer_approvals(self) -> None:
        """Ask for the approvals of all sessions; an empty line leaves one open."""
        requests = await self.backend.pending()
        for number, request in enumerate(requests, 1):
            title = flat(request.title) or "(no prompt)"
            head = f"{number} of {len(requests)} · {title} · {flat(request.session_id)}"
            self._printer.line(self._printer.paint.cyan(head))
            answer = await self._ask_approval(request)
            if answer is None:
                self.show("left open")
                continue
            try:
                await self.backend.answer(request.session_id, request.asked, answer)
                self.show("allowed" if answer.allowed else "denied")
            except AgentError as error:
                complain(error.message, error.hint)

    async def _ask_approval(self, request: Asked) -> Answer | None:
        """Return the answer that is typed; None if the request is left open."""
        printer, asked = self._printer, request.asked
        shown = full_text([asked], printer.paint, printer.width, self.backend.current)
        text = f"{shown}\n  (an empty line leaves it open)\n{answer_prompt(asked, printer.width)}"
        while True:
            line = await self._repl.approver.line(text)
            if line is None or not line.strip():
                return None
            answer = parse_answer(asked, line)
            if answer.scope != "rule":
                return answer
            for preview in await self.backend.preview_rule(request.session_id, asked):
                printer.line(f"  {flat(preview)}")
            line = await self._repl.approver.line("  Save this rule? [y/N] ")
            if line is not None and line.strip().lower() in ("y", "yes"):
                return Answer(True, "rule", rule=asked.proposal)
            text = answer_prompt(asked, printer.width)

    def leave(self) -> None:
        """Leave; the session is kept."""
        self.is_left = True

    def _session_line(self, session: SessionInfo) -> str:
        """Return a session's id, time, state and title."""
        paint = self._printer.paint
        state = display_state(session)
        state = "" if state == "done" else state
        if session.waiting:
            state = f"needs approval ({session.waiting})"
        mark = "↳ " if session.parent else ""  # a subagent's
        title = mark + (flat(session.title) or "(no prompt)")
        title = cut(title, max(10, self._printer.width - len(session.id) - 30))
        start = f"{paint.cyan(flat(session.id))}  {local_time(session.updated_at)}"
        return f"{start}  {paint.yellow(flat(state).ljust(7))}  {title}"

    def _print(self, text: str, kind: str = "") -> None:
        """Print a line of a page, folded below its second column."""
        width = max(20, self._printer.width)
        text = neutral(text, keep="\t").expandtabs(4)
        column = _COLUMN.match(text)
        indent = column.end() if column and column.end() <= width * 2 // 3 else 0
        for at, line in enumerate(wrapped(text[indent:], width - indent).split("\n")):
            start = text[:indent] if at == 0 else " " * indent
            self._printer.line(self._painted(start + line, kind))

    def _painted(self, text: str, kind: str) -> str:
        paint = self._printer.paint
        colours = {
            "head": paint.bold,
            "muted": paint.dim,
            "warning": paint.yellow,
            "added": paint.green,
            "removed": paint.red,
            "place": paint.cyan,
        }
        return colours.get(kind, str)(text)
