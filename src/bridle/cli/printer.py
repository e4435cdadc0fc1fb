"""Print records for a person: the answer on standard output, everything else on standard error.

On a terminal text appears as it streams. In a pipe standard output gets the answer alone: what a
model says before it calls a tool goes to standard error.
"""

from collections.abc import Callable
from io import StringIO
from typing import TextIO

from msgspec.structs import replace

from bridle.cli import render
from bridle.cli.render import notice_lines, retry_line, trace_line
from bridle.cli.style import Paint, Wrap, cut, erasing, erasing_above, paint_for, width_of
from bridle.cli.user_input import user_name
from bridle.events import (
    AgentActivity,
    ApprovalAnswered,
    ApprovalAsked,
    PromptReceived,
    ReplyDiscarded,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolCallReady,
    ToolOutputDelta,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
)
from bridle.messages import ToolCall, ToolOutput
from bridle.presentation.approvals import answer_text, is_unanswered
from bridle.presentation.calls import call_subject
from bridle.presentation.notices import ENDS_RETRY
from bridle.protocols.store import Record
from bridle.workspace.text import flat, neutral


class _NullStream(StringIO):
    """Takes an answer that is not to be shown."""

    def write(self, text: str) -> int:
        return len(text)


class Printer:
    """Prints what a person wants to see of the records, in order."""

    def __init__(
        self,
        out: TextIO | None,
        err: TextIO,
        *,
        quiet: bool = False,
        thinking: bool = False,
        live: bool | None = None,
        paint: Paint | None = None,
    ) -> None:
        self._answers = out or _NullStream()
        self._out = self._answers  # or standard error, if a text is not the answer asked for
        self._err = err
        self._is_quiet = quiet
        self._shows_thinking = thinking
        self._is_live = bool(out and out.isatty()) if live is None else live
        self.paint = paint or paint_for(err)
        self.me = user_name()  # is not named as the author of prompts and answers
        self._wrap = Wrap() if self._is_live and err.isatty() else None
        self.on_asked: Callable[[ApprovalAsked], None] | None = None  # shows approvals in full
        self._text: list[str] = []  # of the reply, in a pipe, until it is known to be the answer
        self._calls: dict[str, ToolCall] = {}  # those without a result
        self._are_several = False  # calls run side by side
        self._unheard: dict[str, str] = {}  # by call: why it does not run, if nobody denied it
        self._activity = ("", "")  # the tool that an agent used last, and for what
        self._is_line_begun = False
        self._is_in_thinking = False  # the line that is begun is thinking, not text
        self._has_prompt = False  # a prompt for a line of input stands at the end
        self._approval = ""  # `shown` of the approval that is asked for here
        self._is_behind_approval = False  # the cursor stands behind it
        self._retry: TraceEvent | None = None  # the attempt that was announced last
        self._retry_rows = 0  # of the line of a retry, if nothing was written since
        self._needs_gap = False  # a line was written since the last text of the answer

    @property
    def width(self) -> int:
        """The columns of the terminal, read each time: a window can be resized."""
        return width_of(self._err)

    def feed(self, record: Record) -> None:
        """Show a record."""
        event = record.event
        if self._retry is not None and isinstance(event, ENDS_RETRY):
            retry, self._retry = self._retry, None
            self._write_retry(retry_line(retry, event, self.paint, self.width))
        match event:
            case TextDelta(text=text):
                self._write_text(text)
            case ThinkingDelta(text=text):
                if self._shows_thinking:
                    self._write_thinking(text)
            case ResponseCompleted():
                self._end_reply(event)
            case ToolCallReady(call=call):
                self._show_call(call)
            case ToolOutputDelta():
                self._show_progress(event)
            case ToolResultEvent(output=output):
                self._show_result(output)
            case AgentActivity():
                self._show_activity(event)
            case ApprovalAsked():
                if self.on_asked is not None:
                    self.on_asked(event)
                else:
                    self.line(render.asked_line(event, self.paint, self.width))
            case ApprovalAnswered():
                self._show_answer(event)
            case PromptReceived(letter=letter) if letter:
                self.line(render.inbox_prompt_line(event, self.paint, self.width, self.me))
            case TodosChanged(todos=todos):
                for line in render.todo_lines(todos, self.paint, self.width):
                    self.line(line)
            case TraceEvent(kind="retry"):
                line = trace_line(event, self.paint, self.width)
                self._write_retry(line)
                self._retry, self._retry_rows = event, line.count("\n") + 1
            case TraceEvent():
                if line := trace_line(event, self.paint, self.width):
                    self.line(line)
            case _:
                if isinstance(event, ReplyDiscarded):
                    self._text = []
                elif isinstance(event, TurnEnded):
                    self._write_answer()
                for line in notice_lines(event, self.paint, self._tool_of, self.me):
                    self.line(line)

    def line(self, text: str) -> None:
        """Write a line beside the answer."""
        if self._is_quiet:
            return
        self.break_line()
        self._err.write(text + "\n")
        self._err.flush()
        self._needs_gap = bool(text)

    def break_line(self) -> None:
        """Begin a new line if one is begun, and take back a prompt for a line of input."""
        self._retry_rows = 0
        if self._has_prompt:
            self._has_prompt = False
            self._err.write(erasing() or "\n")
        if self._is_behind_approval:
            self._is_behind_approval = False
            self._err.write("\n")
        if self._is_line_begun:
            stream = self._out if self._is_live and not self._is_in_thinking else self._err
            rest = self._wrap.flush(self.width) if self._wrap and not self._is_in_thinking else ""
            stream.write(rest + "\n")
            stream.flush()
            self._wrap = Wrap() if self._wrap else None
            self._is_line_begun = self._is_in_thinking = False

    def ask(self, text: str) -> None:
        """Write a question, with the cursor behind it; even if the screen is quiet."""
        self.break_line()
        self._err.write(text)
        self._err.flush()

    def ask_approval(self, text: str, shown: str) -> None:
        """Ask for approval of a call. If it is answered elsewhere, a line will say so."""
        self.ask(text)
        self._approval, self._is_behind_approval = shown, True

    def end_approval(self) -> None:
        """The approval was answered here."""
        self._approval, self._is_behind_approval = "", False

    def drop_approval(self) -> None:
        """The turn that asked for approval is over."""
        self.break_line()
        self._approval = ""

    def prompt(self, text: str) -> None:
        """Ask for a line of input. What is shown before it is there replaces the prompt."""
        self.ask(text)
        self._has_prompt = True

    @property
    def is_prompting(self) -> bool:
        """Return whether a prompt for a line of input stands at the end."""
        return self._has_prompt

    def end_prompt(self) -> None:
        """The line of input is there."""
        self._has_prompt = False

    def redirect_answers(self, *, to_stderr: bool) -> None:
        """Write what models say to standard error, or again to standard output.

        Standard output is for the answer that was asked for, and not for those of other prompts.
        """
        self._out = self._err if to_stderr else self._answers

    def _tool_of(self, call_id: str) -> str:
        call = self._calls.get(call_id)
        return call.name if call is not None else ""

    def _show_call(self, call: ToolCall) -> None:
        self._are_several = bool(self._calls)
        self._calls[call.id] = call
        activity, self._activity = self._activity, ("", "")
        self._write_aside()
        if activity != (call.name, flat(call_subject(call))):  # else its line is there already
            self.line(render.call_line(call, self.paint, self.width))

    def _show_progress(self, event: ToolOutputDelta) -> None:
        """Show what a subagent does; of other calls, only the results are shown."""
        call = self._calls.get(event.call_id)
        if call is None or call.name != "task":
            return
        name = f"{cut(flat(call_subject(call)), 24)}: " if self._are_several else ""
        for text in event.text.splitlines():
            self.line(self.paint.dim(f"    {cut(f'{name}{flat(text)}', self.width - 4)}"))

    def _show_result(self, output: ToolOutput) -> None:
        call = self._calls.pop(output.call_id, None)
        name = f"{call.name} {flat(call_subject(call))}" if call and self._are_several else ""
        command = str(call.arguments.get("command", "")) if call else ""
        output = replace(output, text=self._unheard.pop(output.call_id, output.text))
        paint, width = self.paint, self.width
        for line in render.result_lines(output, paint, width, of=name, command=command):
            self.line(line)

    def _show_activity(self, event: AgentActivity) -> None:
        """Show a tool that an agent uses, unless a call says so, which says more."""
        activity = (event.tool_name, event.description)
        if event.tool_name and not self._calls and activity != self._activity:
            self._activity = activity
            self._write_aside()
            self.line(render.activity_line(event, self.paint, self.width))

    def _show_answer(self, answer: ApprovalAnswered) -> None:
        if self.on_asked is not None:
            if not self._approval or answer.shown != self._approval:
                return  # it was typed here, and stands there
            self._approval = ""
        if is_unanswered(answer):  # the line of the call's result says it
            self._unheard[answer.call_id] = answer_text(answer)
        else:
            self.line(render.answered_line(answer, self.paint, self.width, self.me))

    def _write_retry(self, line: str) -> None:
        """Write a line on the attempts of a request; on a terminal it replaces the one before."""
        if self._retry_rows and self._err.isatty() and not self._is_quiet:
            self._err.write(erasing_above(self._retry_rows))
        self.line(line)

    def _write_text(self, text: str) -> None:
        if not self._is_live:
            self._text.append(text)
            return
        self._retry_rows = 0
        if self._is_in_thinking or self._has_prompt:
            self.break_line()
        if self._needs_gap:
            self._out.write("\n")
            self._needs_gap = False
        text = neutral(text)
        self._out.write(self._wrap.feed(text, self.width) if self._wrap else text)
        self._out.flush()
        self._is_line_begun = not text.endswith("\n")

    def _write_thinking(self, text: str) -> None:
        self._retry_rows = 0
        self._err.write(self.paint.dim(neutral(text)))
        self._err.flush()
        self._is_line_begun, self._is_in_thinking = not text.endswith("\n"), True

    def _end_reply(self, reply: ResponseCompleted) -> None:
        """In a pipe, write the text of a reply: it is now known whether it is the answer."""
        is_final = reply.message is not None and not reply.message.tool_calls
        if is_final and reply.stop_reason == "max_tokens":
            return  # the next reply may continue it
        if self._is_live:
            self.break_line()
        elif is_final and reply.stop_reason not in ("error", "interrupted"):
            self._write_answer()
        else:
            self._write_aside()

    def _write_aside(self) -> None:
        """In a pipe, write the text of a reply that is not the answer."""
        text, self._text = "".join(self._text).strip("\n"), []
        if text:
            self.line(self.paint.dim(neutral(text)))

    def _write_answer(self) -> None:
        """In a pipe, write the text of a reply that is the answer."""
        if self._text:
            text, self._text = "".join(self._text).strip("\n"), []
            self._out.write(neutral(text) + "\n")
            self._out.flush()
