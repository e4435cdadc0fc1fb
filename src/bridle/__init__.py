"""bridle: an agent runtime. Any model works on your files, commands and data; you stay in control.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

import sys

if (getattr(sys, "argv", None) or [""])[0].endswith(("bridle", "-m")):  # before all else
    from bridle.startup import prepare_process

    prepare_process()

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridle import events as events
    from bridle.engine.assistant import Assistant as Assistant
    from bridle.engine.assistant import SendOptions as SendOptions
    from bridle.engine.assistant import SessionStore as SessionStore
    from bridle.engine.assistant import StreamCallbacks as StreamCallbacks
    from bridle.engine.hub import HubEvent as HubEvent
    from bridle.engine.hub import LiveSummary as LiveSummary
    from bridle.engine.session import Session as Session
    from bridle.engine.structured_output import complete as complete
    from bridle.errors import AgentError as AgentError
    from bridle.errors import BadReply as BadReply
    from bridle.errors import BudgetReached as BudgetReached
    from bridle.errors import ConfigError as ConfigError
    from bridle.errors import EmptyPrompt as EmptyPrompt
    from bridle.errors import ModelRefused as ModelRefused
    from bridle.errors import ProviderError as ProviderError
    from bridle.errors import SessionBusy as SessionBusy
    from bridle.errors import SessionClosed as SessionClosed
    from bridle.errors import SessionLocked as SessionLocked
    from bridle.errors import StoreFailed as StoreFailed
    from bridle.errors import ToolError as ToolError
    from bridle.errors import UnknownApproval as UnknownApproval
    from bridle.errors import UnknownSession as UnknownSession
    from bridle.events import ApprovalAsked as ApprovalAsked
    from bridle.messages import File as File
    from bridle.messages import Image as Image
    from bridle.messages import Message as Message
    from bridle.messages import Text as Text
    from bridle.messages import ToolCall as ToolCall
    from bridle.messages import ToolOutput as ToolOutput
    from bridle.messages import user as user
    from bridle.policy import Rule as Rule
    from bridle.policy import ToolPolicy as ToolPolicy
    from bridle.protocols.hooks import HookEvent as HookEvent
    from bridle.protocols.hooks import HookResult as HookResult
    from bridle.protocols.provider import Provider as Provider
    from bridle.protocols.provider import ProviderInfo as ProviderInfo
    from bridle.protocols.provider import Request as Request
    from bridle.protocols.provider import RequestConfig as RequestConfig
    from bridle.protocols.provider import Response as Response
    from bridle.protocols.session import Answer as Answer
    from bridle.protocols.session import TurnResult as TurnResult
    from bridle.protocols.store import Record as Record
    from bridle.protocols.tool import ToolContext as ToolContext
    from bridle.protocols.tool import ToolResult as ToolResult
    from bridle.runtime import Engine as Engine
    from bridle.runtime import Limits as Limits
    from bridle.runtime import build_engine as build_engine
    from bridle.runtime import provider as provider
    from bridle.runtime.hooks import hook as hook
    from bridle.stores.memory_store import MemoryStore as MemoryStore
    from bridle.tools.function import tool as tool
    from bridle.usage import ExecutionMetrics as ExecutionMetrics
    from bridle.usage import Price as Price
    from bridle.usage import Usage as Usage

__version__ = "0.1.0"

_MODULES = {
    "engine.structured_output": ("complete",),
    "engine.assistant": ("Assistant", "SendOptions", "SessionStore", "StreamCallbacks"),
    "engine.session": ("Session",),
    "engine.hub": ("LiveSummary", "HubEvent"),
    "errors": (
        "AgentError",
        "BadReply",
        "BudgetReached",
        "ConfigError",
        "EmptyPrompt",
        "ModelRefused",
        "ProviderError",
        "SessionBusy",
        "SessionClosed",
        "SessionLocked",
        "StoreFailed",
        "ToolError",
        "UnknownApproval",
        "UnknownSession",
    ),
    "events": ("ApprovalAsked",),
    "messages": ("File", "Image", "Message", "Text", "ToolCall", "ToolOutput", "user"),
    "policy": ("Rule", "ToolPolicy"),
    "protocols.hooks": ("HookEvent", "HookResult"),
    "protocols.provider": ("Provider", "ProviderInfo", "Request", "RequestConfig", "Response"),
    "protocols.session": ("Answer", "TurnResult"),
    "protocols.store": ("Record",),
    "protocols.tool": ("ToolContext", "ToolResult"),
    "runtime": ("Engine", "Limits", "build_engine", "provider"),
    "runtime.hooks": ("hook",),
    "stores.memory_store": ("MemoryStore",),
    "tools.function": ("tool",),
    "usage": ("ExecutionMetrics", "Price", "Usage"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    if name == "events":
        return import_module("bridle.events")
    if (module := _MODULE_OF.get(name)) is None:
        raise AttributeError(f"module 'bridle' has no attribute {name!r}")
    value = getattr(import_module(f"bridle.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
