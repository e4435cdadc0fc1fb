"""What a session's records add up to beside the conversation: todos, files, use, the queue. Pure.

The side panel and the status bar show it.
"""

import os

from msgspec import Struct, field

from bridle.events import (
    AgentAttached,
    ApprovalAsked,
    Checkpoint,
    Event,
    ModeChanged,
    PromptReceived,
    PromptWithdrawn,
    Rewound,
    SessionStarted,
    TitleChanged,
    Todo,
    TurnParked,
    Undone,
)
from bridle.presentation.blocks import Call
from bridle.usage import ExecutionMetrics


class State(Struct):
    """Everything around the conversation. `mode` and `model` are empty until a record says them.

    `me` is the name under which the person who looks does things: theirs is not shown.
    """

    me: str = "me"
    title: str = ""
    mode: str = ""
    model: str = ""
    agent: str = ""
    workspace: str = ""
    turn: int = 0
    busy: bool = False
    parked: bool = False
    doing: str = ""
    began: str = ""  # when the running turn began
    todos: tuple[Todo, ...] = ()
    files: dict[str, str] = field(default_factory=dict)  # path: added, changed, deleted
    calls: dict[str, Call] = field(default_factory=dict)  # those without a result, by id
    waiting: dict[int, PromptReceived] = field(default_factory=dict)
    asked: dict[str, ApprovalAsked] = field(default_factory=dict)  # by what was shown
    used: ExecutionMetrics = ExecutionMetrics()
    spent: ExecutionMetrics = ExecutionMetrics()  # in this turn

    def forget_files(self, workspace: str) -> None:
        """Leave out the changed files that are gone, or that were committed since. Looks at them.

        May be called in a thread.
        """
        from bridle.workspace.git.worktree import uncommitted_files

        files = dict(self.files)
        if not files:
            return
        still = uncommitted_files(workspace, files)
        for path, how in files.items():
            is_there = os.path.lexists(f"{workspace}/{path}")
            is_gone = how != "deleted" and not is_there
            if is_gone if still is None else path not in still:
                self.files.pop(path, None)

    def take_checkpoint(self, kept: Checkpoint) -> None:
        """A log that is read from its tail: this is what came before."""
        self.title = kept.title or self.title
        self.mode = kept.mode or self.mode
        self.workspace = kept.workspace or self.workspace
        self.turn = max(self.turn, kept.turn)
        self.todos = kept.todos
        self.used = kept.metrics
        self.waiting = dict(kept.waiting)
        self.asked = {one.shown: one for one in kept.asked}
        self.busy, self.parked = bool(kept.running) and not kept.parked, kept.parked

    def take(self, event: Event) -> None:
        """What a record changes here."""
        match event:
            case TitleChanged():
                self.title = event.title
            case ModeChanged():
                self.mode = event.mode
            case AgentAttached():
                self.agent = event.agent
            case SessionStarted():
                self.model = event.model or self.model
                self.workspace = event.workspace or self.workspace
            case Checkpoint():
                self.take_checkpoint(event)
            case _:
                self._take_back(event)

    def _take_back(self, event: Event) -> None:
        match event:
            case PromptWithdrawn():
                self.waiting.pop(event.prompt, None)
            case TurnParked():
                self.busy, self.parked = False, True
            case Rewound():
                self.todos = event.todos
            case Undone():
                for path in event.files:
                    self.files.pop(path, None)
