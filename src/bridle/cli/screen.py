"""Feeds records to a person: the answer to standard output, everything else to standard error.

On a terminal text appears as it streams. In a pipe standard output gets the answer alone: what a
model says before it calls a tool goes to standard error. Knows the renderer, not the session.
"""

from collections.abc import Callable
from io import StringIO
from typing import TextIO

from msgspec.structs import replace

from bridle.cli import event_lines
from bridle.cli.event_lines import notice_lines, retry_line, trace_line
from bridle.cli.style import Paint, Wrap, cut, erasing, erasing_above, paint_for, width_of
from bridle.cli.user_input import user_name
from bridle.events import (
    AgentActivity,
    ApprovalAnswered,
    ApprovalAsked,
    Event,
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
from bridle.messages import ToolCall
from bridle.protocols.store import Record
from bridle.tui.labels import ENDS_RETRY
from bridle.workspace.event_text import answered_words, is_unheard
from bridle.workspace.text import flat, neutral


class _Nowhere(StringIO):
    """Where an answer goes that is not to be shown."""

    def write(self, text: str) -> int:
        return len(text)


class Screen:
    """Is fed records, in order, and writes what a person wants to see of them."""

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
        self._out = self._answers = out or _Nowhere()
        self._err = err
        self._quiet = quiet
        self._thinking = thinking
        self._live = bool(out and out.isatty()) if live is None else live
        self.paint = paint or paint_for(err)
        self.me = user_name()  # whose deeds need no name
        self._wrap = Wrap() if self._live and err.isatty() else None
        self.on_asked: Callable[[ApprovalAsked], None] | None = None  # who shows questions in full
        self._held: list[str] = []
        self._open: dict[str, ToolCall] = {}
        self._unheard: dict[str, str] = {}  # why calls do not run that no person refused
        self._several = False  # calls are open side by side
        self._doing = ("", "")  # what an agent was last seen to work with
        self._at_start = True
        self._whispering = False
        self._prompting = False  # a question stands at the end, and may be in the way
        self._asking = ""  # the approval that somebody here is asked for, by what was shown
        self._behind = False  # the cursor stands behind that question
        self._retry: TraceEvent | None = None  # the last attempt that was announced
        self._retry_below = False  # nothing was written since its line
        self._lined = False  # the last thing shown was a line that is not the answer's

    @property
    def width(self) -> int:
        """Asked anew each time: a window can be resized."""
        return width_of(self._err)

    def feed(self, record: Record) -> None:
        """Show one record."""
        event = record.event
        if self._retry is not None and isinstance(event, ENDS_RETRY):
            retry, self._retry = self._retry, None
            self._write_retry(retry_line(retry, event, self.paint, self.width))
        match event:
            case TraceEvent(kind="retry"):
                self._write_retry(trace_line(event, self.paint, self.width))
                self._retry, self._retry_below = event, True
            case TextDelta(text=text):
                self._say(text)
            case ThinkingDelta(text=text):
                if self._thinking:
                    self._whisper(text)
            case ResponseCompleted():
                self._reply_over(event)
            case ReplyDiscarded():
                self._held = []
                self._tell(event)
            case _:
                if isinstance(event, TurnEnded):
                    self._write_held()
                self._tell(event)

    def _write_retry(self, line: str) -> None:
        """Write a line on the attempts of one request; on a terminal it replaces the one before."""
        if self._retry_below and self._err.isatty() and not self._quiet:
            self._err.write(erasing_above())
        self.line(line)

    def _tell(self, event: Event) -> None:
        for line in self._lines(event):
            self.line(line)

    def line(self, text: str) -> None:
        """A line beside the answer."""
        if self._quiet:
            return
        self.break_line()
        self._err.write(text + "\n")
        self._err.flush()
        self._lined = bool(text)

    def ask(self, text: str) -> None:
        """A question; the cursor stays behind it. Asked even when the rest is quiet."""
        self.break_line()
        self._err.write(text)
        self._err.flush()

    def ask_approval(self, text: str, shown: str) -> None:
        """Ask whether a call may run; an answer from elsewhere gets a line of its own."""
        self.ask(text)
        self._asking, self._behind = shown, True

    def approval_said(self) -> None:
        """It was answered here."""
        self._asking, self._behind = "", False

    def leave_question(self) -> None:
        """The turn that asked is over: what stands there is no question any more."""
        self.break_line()
        self._asking = ""

    def answer_aside(self) -> None:
        """What is answered from here on is nobody's answer here: standard output has had it."""
        self._out = self._err

    def answer_here(self) -> None:
        """What is answered from here on is the answer that was asked for."""
        self._out = self._answers

    def prompt(self, text: str) -> None:
        """Ask for a line. What comes before it is typed takes the place of the question."""
        self.ask(text)
        self._prompting = True

    @property
    def is_prompting(self) -> bool:
        """Does a prompt for a line stand at the end?"""
        return self._prompting

    def typed(self) -> None:
        """The line is there."""
        self._prompting = False

    def break_line(self) -> None:
        """Begin a new line where text stands unfinished."""
        self._retry_below = False
        if self._prompting:
            self._prompting = False
            self._err.write(erasing() or "\n")
        if self._behind:
            self._behind = False
            self._err.write("\n")
        if not self._at_start:
            stream = self._out if self._live and not self._whispering else self._err
            held = self._wrap.flush(self.width) if self._wrap and not self._whispering else ""
            stream.write(held + "\n")
            stream.flush()
            self._wrap = Wrap() if self._wrap else None
            self._at_start, self._whispering = True, False

    def _lines(self, event: Event) -> list[str]:
        paint, width = self.paint, self.width
        match event:
            case ToolCallReady(call=call):
                return self._call(call)
            case ToolResultEvent():
                return self._result(event)
            case PromptReceived(letter=letter) if letter:
                return [event_lines.letter_line(event, paint, width, self.me)]
            case TodosChanged(todos=todos):
                return event_lines.todo_lines(todos, paint, width)
            case ApprovalAsked():
                return self._asked(event)
            case ApprovalAnswered():
                return self._answered(event)
            case TraceEvent():
                return [line for line in [trace_line(event, paint, width)] if line]
            case _:
                return self._activity(event) or notice_lines(event, paint, self._name, self.me)

    def _activity(self, event: Event) -> list[str]:
        """An agent's call says more; one that makes none is seen to work all the same."""
        if isinstance(event, ToolOutputDelta):
            return self._progress(event)
        if not isinstance(event, AgentActivity):
            return []
        doing = (event.tool_name, event.description)
        if not event.tool_name or self._open or doing == self._doing:
            return []
        self._doing = doing
        return [*self._aside(), event_lines.activity_line(event, self.paint, self.width)]

    def _progress(self, event: ToolOutputDelta) -> list[str]:
        """What a child session does, as its parent hears of it; other tools show their results."""
        call = self._open.get(event.call_id)
        if call is None or call.name != "task":
            return []
        whose = f"{cut(event_lines.subject_of(call), 24)}: " if self._several else ""
        lines = (f"{whose}{flat(one)}" for one in event.text.splitlines())
        return [self.paint.dim(f"    {cut(line, self.width - 4)}") for line in lines]

    def _asked(self, asked: ApprovalAsked) -> list[str]:
        if self.on_asked is None:
            return [event_lines.asked_line(asked, self.paint, self.width)]
        self.on_asked(asked)
        return []

    def _answered(self, answer: ApprovalAnswered) -> list[str]:
        if self.on_asked is not None:
            if not self._asking or answer.shown != self._asking:
                return []  # it was typed here, and stands there
            self._asking = ""
        if is_unheard(answer):
            self._unheard[answer.call_id] = answered_words(answer)
            return []  # the line of its result says it
        return [event_lines.answered_line(answer, self.paint, self.width, self.me)]

    def _call(self, call: ToolCall) -> list[str]:
        self._several = bool(self._open)
        self._open[call.id] = call
        known, self._doing = self._doing, ("", "")
        if known == (call.name, event_lines.subject_of(call)):
            return self._aside()  # its agent was seen to work with it
        return [*self._aside(), event_lines.call_line(call, self.paint, self.width)]

    def _name(self, call_id: str) -> str:
        call = self._open.get(call_id)
        return call.name if call is not None else ""

    def _result(self, event: ToolResultEvent) -> list[str]:
        call = self._open.pop(event.output.call_id, None)
        name = f"{call.name} {event_lines.subject_of(call)}" if call and self._several else ""
        why = self._unheard.pop(event.output.call_id, event.output.text)
        output = replace(event.output, text=why)
        command = str(call.arguments.get("command", "")) if call else ""
        return event_lines.result_lines(output, self.paint, self.width, of=name, command=command)

    def _say(self, text: str) -> None:
        if not self._live:
            self._held.append(text)
            return
        self._retry_below = False
        if self._whispering or self._prompting:
            self.break_line()
        if self._lined:
            self._out.write("\n")  # air between what was done and what is said of it
            self._lined = False
        text = neutral(text)
        self._out.write(self._wrap.feed(text, self.width) if self._wrap else text)
        self._out.flush()
        self._at_start = text.endswith("\n")

    def _whisper(self, text: str) -> None:
        self._retry_below = False
        self._err.write(self.paint.dim(neutral(text)))
        self._err.flush()
        self._at_start, self._whispering = text.endswith("\n"), True

    def _aside(self) -> list[str]:
        """What was said in a pipe and is not the answer."""
        text, self._held = "".join(self._held).strip("\n"), []
        return [self.paint.dim(neutral(text))] if text else []

    def _reply_over(self, reply: ResponseCompleted) -> None:
        """A reply ended: in a pipe it is now known whether it was the answer."""
        final = reply.message is not None and not reply.message.tool_calls
        if final and reply.stop_reason == "max_tokens":
            return  # the model may go on with it: what comes next belongs to the same text
        if self._live:
            self.break_line()
            return
        if final and reply.stop_reason not in ("error", "interrupted"):
            self._write_held()
        for line in self._aside():
            self.line(line)

    def _write_held(self) -> None:
        """What was said in a pipe is the answer."""
        if self._held:
            text, self._held = "".join(self._held).strip("\n"), []
            self._out.write(neutral(text) + "\n")
            self._out.flush()
