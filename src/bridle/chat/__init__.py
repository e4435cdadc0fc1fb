"""The multi-user chat: many users talk to an agent over their own data, kept apart by construction.

Names are loaded when they are first used: the database and the SDK take a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridle.chat.app import ChatApp as ChatApp
    from bridle.chat.app_named import named_app as named_app
    from bridle.chat.binding import Binding as Binding
    from bridle.chat.data import Database as Database
    from bridle.chat.data import Owned as Owned
    from bridle.chat.guard_titles import shown as shown
    from bridle.chat.matching import matches as matches
    from bridle.chat.profile import Confirm as Confirm
    from bridle.chat.profile import Profile as Profile
    from bridle.chat.profile import Telling as Telling
    from bridle.chat.remote import RemoteTools as RemoteTools
    from bridle.chat.replies import Replies as Replies
    from bridle.chat.replies import standard as standard
    from bridle.chat.responder import Ask as Ask
    from bridle.chat.responder import Rules as Rules
    from bridle.chat.responder import Said as Said
    from bridle.chat.runner import AgentRunner as AgentRunner
    from bridle.chat.service import ChatService as ChatService
    from bridle.chat.service_values import Reply as Reply
    from bridle.chat.service_values import ServiceLimits as ServiceLimits
    from bridle.chat.service_values import Setting as Setting
    from bridle.chat.tasks.server import MCPToolServer as MCPToolServer
    from bridle.chat.toolbox import Call as Call
    from bridle.chat.toolbox import Toolbox as Toolbox
    from bridle.chat.toolbox import ToolFailed as ToolFailed
    from bridle.chat.toolbox_server import ToolServer as ToolServer
    from bridle.chat.tools import ToolInfo as ToolInfo
    from bridle.chat.tools import ToolSource as ToolSource
    from bridle.chat.values import AgentContext as AgentContext
    from bridle.chat.values import AgentResult as AgentResult
    from bridle.chat.values import MessageHistory as MessageHistory
    from bridle.chat.values import ToolCallRecord as ToolCallRecord

_HOMES = {
    "app": ("ChatApp",),
    "app_named": ("named_app",),
    "binding": ("Binding",),
    "data": ("Database", "Owned"),
    "guard_titles": ("shown",),
    "matching": ("matches",),
    "profile": ("Confirm", "Profile", "Telling"),
    "remote": ("RemoteTools",),
    "replies": ("Replies", "standard"),
    "responder": ("Ask", "Rules", "Said"),
    "runner": ("AgentRunner",),
    "service": ("ChatService",),
    "service_values": ("Reply", "ServiceLimits", "Setting"),
    "tasks.server": ("MCPToolServer",),
    "toolbox": ("Call", "ToolFailed", "Toolbox"),
    "toolbox_server": ("ToolServer",),
    "tools": ("ToolInfo", "ToolSource"),
    "values": ("AgentContext", "AgentResult", "MessageHistory", "ToolCallRecord"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = tuple(sorted(_HOME))


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
