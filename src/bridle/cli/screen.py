"""Feeds records to a person: the answer to standard output, everything else to standard error.

On a terminal text appears as it streams. In a pipe standard output gets the answer alone: what a
model says before it calls a tool goes to standard error. Knows the renderer, not the session.
"""

from io import StringIO
from typing import TextIO

from bridle.cli import render
from bridle.cli.style import Paint, paint_for, width_of
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolCallReady,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
)
from bridle.messages import ToolCall
from bridle.promises.store import Record
from bridle.workspace.text import neutral


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
        self._out = out or _Nowhere()
        self._err = err
        self._quiet = quiet
        self._thinking = thinking
        self._live = bool(out and out.isatty()) if live is None else live
        self._joined = self._live and err.isatty()  # both are the same terminal
        self.paint = paint or paint_for(err)
        self.asks = False  # somebody shows the questions in full, and knows the answers
        self._held: list[str] = []
        self._open: dict[str, ToolCall] = {}
        self._at_start = True

    @property
    def width(self) -> int:
        """Asked anew each time: a window can be resized."""
        return width_of(self._err)

    def feed(self, record: Record) -> None:
        """Show one record."""
        event = record.event
        match event:
            case TextDelta(text=text):
                self._say(text)
            case ThinkingDelta(text=text):
                if self._thinking:
                    self._whisper(text)
            case ResponseCompleted():
                self._reply_over(event)
            case _:
                for line in self._lines(event):
                    self.line(line)

    def line(self, text: str) -> None:
        """A line beside the answer."""
        if self._quiet:
            return
        self.break_line()
        self._err.write(text + "\n")
        self._err.flush()

    def ask(self, text: str) -> None:
        """A question; the cursor stays behind it. Asked even when the rest is quiet."""
        self.break_line()
        self._err.write(text)
        self._err.flush()

    def break_line(self) -> None:
        """Begin a new line where text stands unfinished."""
        if not self._at_start:
            (self._out if self._live else self._err).write("\n")
            self._out.flush()
            self._at_start = True

    def _lines(self, event: Event) -> list[str]:
        paint, width = self.paint, self.width
        match event:
            case ToolCallReady(call=call):
                self._open[call.id] = call
                return [render.call_line(call, paint, width)]
            case ToolResultEvent():
                return [self._result(event)]
            case TodosChanged(todos=todos):
                return render.todo_lines(todos, paint, width)
            case ApprovalAsked() if not self.asks:
                return [render.asked_line(event, paint, width)]
            case ApprovalAnswered() if not self.asks:
                return [render.answered_line(event, paint, width)]
            case TraceEvent():
                return [line for line in [render.trace_line(event, paint, width)] if line]
            case TurnEnded() if event.reason == "done" and event.detail:
                return [render.end_line(event, paint)]
            case _:
                return []

    def _result(self, event: ToolResultEvent) -> str:
        call = self._open.pop(event.output.call_id, None)
        several = call is not None and len(self._open) > 0
        name = f"{call.name} {render.subject_of(call)}" if call and several else ""
        return render.result_line(event.output, self.paint, self.width, of=name)

    def _say(self, text: str) -> None:
        if not self._live:
            self._held.append(text)
            return
        self._out.write(neutral(text))
        self._out.flush()
        self._at_start = text.endswith("\n")

    def _whisper(self, text: str) -> None:
        self._err.write(self.paint.dim(neutral(text)))
        self._err.flush()
        self._at_start = text.endswith("\n")

    def _reply_over(self, reply: ResponseCompleted) -> None:
        """A reply ended: in a pipe it is now known whether it was the answer."""
        if self._live:
            self.break_line()
            return
        text, self._held = "".join(self._held).strip("\n"), []
        if not text:
            return
        answer = reply.message is not None and not reply.message.tool_calls
        if answer and reply.stop_reason not in ("error", "interrupted"):
            self._out.write(neutral(text) + "\n")
            self._out.flush()
        else:
            self.line(self.paint.dim(neutral(text)))
