"""The promise of hooks: what a person has put before and after a tool, a prompt and a turn.

A hook can deny, add a word for the model, or change the input, which is then judged again. It can
never lift a deny. One that hangs or fails has denied.
"""

from typing import Any, Literal, Protocol

from msgspec import Struct

from bridle.events import FilesChanged
from bridle.messages import ToolCall

Moment = Literal["before_prompt", "before_turn", "before_tool", "after_tool", "after_turn"]


class Occasion(Struct, frozen=True, omit_defaults=True):
    """What a hook is told: where and when, and what is about to happen or has happened."""

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


class Remark(Struct, frozen=True, omit_defaults=True):
    """What hooks say, all together: a reason to deny, a word for the model, changed input."""

    deny: str = ""
    word: str = ""
    arguments: dict[str, Any] | None = None
    prompt: str | None = None


class Hooks(Protocol):
    """Every hook that was set up."""

    def listens(self, moment: Moment) -> bool:
        """Is there one for this moment? Where there is none, nobody waits."""
        ...

    async def hear(self, occasion: Occasion) -> Remark:
        """Have them speak, in their order; each sees what those before it changed. Never raises."""
        ...


class ChangeRecorder(Protocol):
    """What is kept for one turn. Trouble is said in the `uncovered` of a change, never raised."""

    async def before(self, call: ToolCall) -> None:
        """Keep what stands there, before this call has its effect."""
        ...

    async def after(self, call: ToolCall) -> FilesChanged | None:
        """What the call changed; None where nothing."""
        ...


class UndoStore(Protocol):
    """Keeps what turns change, for a workspace."""

    def record_turn(self, session_id: str, turn: int) -> ChangeRecorder: ...
