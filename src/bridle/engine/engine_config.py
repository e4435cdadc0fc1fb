"""What the sessions of one engine share. `runtime` puts it together."""

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from bridle.engine.budget import Limits
from bridle.engine.redaction import Redactor
from bridle.events import ApprovalAsked
from bridle.policy import Mode, Rule
from bridle.protocols.provider import Provider, RequestConfig
from bridle.protocols.session import Answer
from bridle.protocols.store import Day, Store
from bridle.protocols.tool import Files, Tool, ToolSource

if TYPE_CHECKING:
    from bridle.engine.gate import Confinement
    from bridle.engine.session import Session
    from bridle.engine.subagents import Parent
    from bridle.protocols.agent import BaseAgent
    from bridle.protocols.hooks import Hooks, UndoStore
    from bridle.protocols.machine import Machine

Approver = Callable[[ApprovalAsked], Awaitable[Answer | bool]]
OnAsk = Literal["wait", "deny", "park"]
Back = Callable[[dict[str, Any]], dict[str, Any]]
Translate = Callable[[str, dict[str, Any], str], tuple[str, dict[str, Any], Back] | None]


class PolicyEngine(Protocol):
    """The user's own policy. It is asked after the floor and the deny rules, and lifts neither."""

    async def evaluate(self, tool: Tool, arguments: dict[str, Any]) -> Any:
        """Return a `Decision`, or one of the words allowed, requires_approval, denied."""
        ...


class EngineConfig(Struct):
    """Provider, tools, store, workspace, rules, approvals, limits and settings of an engine.

    The fields from `redactor` on are made here. `changed` returns a copy for one session.
    """

    provider: Provider
    tools: Mapping[str, Tool]
    store: Store
    workspace: Files
    rules: tuple[Rule, ...] = ()
    mode: Mode = "ask"
    approver: Approver | None = None  # gets one request at a time; True allows the call once
    on_ask: OnAsk = "deny"  # without an approver: wait for `Session.answer`, deny, or park the turn
    ask_seconds: float = 86_400.0  # that a request for approval stays open before it is denied
    ask_grant_seconds: float = 28_800.0  # that an approval for the session lasts
    limits: Limits = Limits()
    config: RequestConfig = RequestConfig()
    system: str = ""
    deps: Any = None  # passed to tools as `context.deps`
    small: Provider | None = None  # the small model, which writes titles and summaries
    face: str = "library"  # the interface that runs the engine
    version: str = ""
    secrets: tuple[str, ...] = ()  # known keys, which are taken out of everything
    redact: tuple[str, ...] = ()  # the user's own patterns of secrets
    redact_tokens: bool = True  # also redact what looks like a token
    day: Day | None = None  # the account for daily limits
    machine: "Machine | None" = None  # what commands and paths are judged by
    judge: PolicyEngine | None = None
    judge_seconds: float = 10.0  # that the policy engine has before a call is denied
    hooks: "Hooks | None" = None
    undo: "UndoStore | None" = None
    sandbox: "str | Confinement" = ""  # the level that commands run at (empty: none)
    learn: Callable[[str, str], None] | None = (
        None  # saves a rule from an approval, and who gave it
    )
    agent: "BaseAgent | None" = None  # runs the turns in place of our own loop
    agents: "Callable[[str], BaseAgent | None] | None" = None  # by name, for subagents; None: loop
    translate: Translate | None = None  # maps well-known agents' tool calls to ours, and back
    sources: "tuple[ToolSource, ...]" = ()  # of tools that come and go
    parent: "Parent | None" = None  # the turn that started this session as a subagent
    begin: "Callable[[EngineConfig], Session] | None" = None  # opens a session; set by the engine
    redactor: Redactor | None = None
    offered: tuple[Tool, ...] = ()  # the tools as the model gets them

    def __post_init__(self) -> None:
        self.offered = tuple(self.tools.values())
        self.redactor = Redactor(self.secrets, self.redact, shapes=self.redact_tokens) or None
        self.secrets = ()  # so that nothing that shows this value shows them

    def changed(self, **values: Any) -> "EngineConfig":
        """Return a copy with other values for these fields."""
        config = copy(self)
        if (tools := values.pop("tools", None)) is not None:
            config.offered = tuple(tools)
            config.tools = {tool.name: tool for tool in config.offered}
        for name, value in values.items():
            setattr(config, name, value)
        return config
