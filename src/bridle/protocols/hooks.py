"""The protocol of hooks: what a person has run before and after a tool, a prompt and a turn.

A hook can deny, add a note for the model, or change the input, which is then judged again. It can
never lift a deny. One that hangs or fails has denied.
"""

from typing import Any, Literal, Protocol

from msgspec import Struct

from bridle.events import FilesChanged
from bridle.messages import ToolCall

Moment = Literal["before_prompt", "before_turn", "before_tool", "after_tool", "after_turn"]


class HookEvent(Struct, frozen=True, omit_defaults=True):
    """What a hook gets: the moment, where it is, and what is about to happen or has happened."""

    moment: Moment
    session_id: str = ""
    cwd: str = ""
    turn: int = 0
    prompt: str = ""
    tool: str = ""
    call_id: str = ""
    arguments: dict[str, Any] = {}
    result: str = ""
    ok: bool = True


class HookResult(Struct, frozen=True, omit_defaults=True):
    """What hooks return, all together: a reason to deny, a note for the model, changed input."""

    deny: str = ""
    word: str = ""
    arguments: dict[str, Any] | None = None
    prompt: str | None = None


class Hooks(Protocol):
    """All hooks of a session."""

    def handles(self, moment: Moment) -> bool:
        """Whether there is a hook for this moment. If not, `run` is not called for it."""
        ...

    async def run(self, event: HookEvent) -> HookResult:
        """Run them in their order; each gets what those before it changed. Never raises."""
        ...


class ChangeRecorder(Protocol):
    """Records what one turn changes. Never raises: a change says what it lacks in `uncovered`."""

    async def before(self, call: ToolCall) -> None:
        """Record the state of the files before this call has its effect."""
        ...

    async def after(self, call: ToolCall) -> FilesChanged | None:
        """Return what the call changed; None if nothing."""
        ...


class UndoStore(Protocol):
    """Stores what turns change in a workspace, so that it can be undone."""

    def record_turn(self, session_id: str, turn: int) -> ChangeRecorder: ...
