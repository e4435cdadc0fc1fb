"""How the turns of a session ended, as its records tell it. A fold; waits for nothing."""

from typing import cast, get_args

from bridle.engine.history import History
from bridle.errors import AgentError, Kind
from bridle.events import MessageAdded, PromptWithdrawn, ResponseCompleted, TurnEnded
from bridle.protocols.session import TurnResult
from bridle.protocols.store import Record


class Endings:
    """The results of a session's turns, by number."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._text = ""
        self._cut = False  # was the newest reply text that was cut off? Then the next continues it
        self._begun = ""  # the text that the newest reply continues
        self._before = History().metrics
        self.results: dict[int, TurnResult] = {}
        self.began = 0  # the record before the prompt of the newest turn
        self._turn = 0

    def take(self, record: Record, history: History) -> None:
        """One record more; the history knows it already."""
        match record.event:
            case MessageAdded(prompt=prompt) if prompt:
                if history.running != self._turn:
                    self._turn, self.began = history.running, prompt - 1
                    self._text, self._begun, self._cut = "", "", False
                    self._before = history.before
            case ResponseCompleted(stop_reason=reason, message=message):
                calls = message is not None and message.tool_calls
                self._begun = "" if calls or not self._cut else self._begun + self._text
                self._text = message.content if message is not None else ""
                self._cut = reason == "max_tokens" and not calls
            case TurnEnded() as end:
                self.results[end.turn] = self._result(end, history)
            case PromptWithdrawn(turn=turn) if not _is_to_come(history, turn):
                gone = TurnResult("", "interrupted", self._id, turn, "the prompt was withdrawn")
                self.results.setdefault(turn, gone)
            case _:
                pass

    def _result(self, end: TurnEnded, history: History) -> TurnResult:
        error = None
        if end.error_kind in get_args(Kind):
            error = AgentError(cast("Kind", end.error_kind), end.detail, hint=end.hint)
        used = history.metrics.since(self._before)
        text = self._begun + self._text
        return TurnResult(text, end.reason, self._id, end.turn, end.detail, error, used)


def _is_to_come(history: History, turn: int) -> bool:
    return turn == history.running or any(one.turn == turn for one in history.waiting.values())
