"""The multi-user chat: many users talk to an agent, each over their own data.

Names are imported when they are first used, because the database and the MCP SDK take a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridle.chat.app import ChatApp as ChatApp
    from bridle.chat.app import load_app as load_app
    from bridle.chat.db import Database as Database
    from bridle.chat.db import OwnedRow as OwnedRow
    from bridle.chat.i18n import Replies as Replies
    from bridle.chat.i18n import standard_replies as standard_replies
    from bridle.chat.matching import matches as matches
    from bridle.chat.profile import Confirm as Confirm
    from bridle.chat.profile import Profile as Profile
    from bridle.chat.profile import ReplyContext as ReplyContext
    from bridle.chat.reply_filter import clean_title as clean_title
    from bridle.chat.rule_responder import Ask as Ask
    from bridle.chat.rule_responder import RuleMatch as RuleMatch
    from bridle.chat.rule_responder import Rules as Rules
    from bridle.chat.runner import AgentRunner as AgentRunner
    from bridle.chat.service import ChatService as ChatService
    from bridle.chat.tasks.tools import MCPToolServer as MCPToolServer
    from bridle.chat.tools.identity import Binding as Binding
    from bridle.chat.tools.mcp_server import ToolServer as ToolServer
    from bridle.chat.tools.remote import RemoteTools as RemoteTools
    from bridle.chat.tools.source import ToolInfo as ToolInfo
    from bridle.chat.tools.source import ToolSource as ToolSource
    from bridle.chat.tools.toolbox import Call as Call
    from bridle.chat.tools.toolbox import Toolbox as Toolbox
    from bridle.chat.tools.toolbox import ToolFailed as ToolFailed
    from bridle.chat.values import AgentContext as AgentContext
    from bridle.chat.values import AgentResult as AgentResult
    from bridle.chat.values import Locale as Locale
    from bridle.chat.values import MessageHistory as MessageHistory
    from bridle.chat.values import Reply as Reply
    from bridle.chat.values import ServiceLimits as ServiceLimits
    from bridle.chat.values import ToolCallRecord as ToolCallRecord

_HOMES = {
    "app": ("ChatApp", "load_app"),
    "db": ("Database", "OwnedRow"),
    "i18n": ("Replies", "standard_replies"),
    "matching": ("matches",),
    "profile": ("Confirm", "Profile", "ReplyContext"),
    "reply_filter": ("clean_title",),
    "rule_responder": ("Ask", "RuleMatch", "Rules"),
    "runner": ("AgentRunner",),
    "service": ("ChatService",),
    "tasks.tools": ("MCPToolServer",),
    "tools.identity": ("Binding",),
    "tools.mcp_server": ("ToolServer",),
    "tools.remote": ("RemoteTools",),
    "tools.source": ("ToolInfo", "ToolSource"),
    "tools.toolbox": ("Call", "ToolFailed", "Toolbox"),
    "values": (
        "AgentContext",
        "AgentResult",
        "Locale",
        "MessageHistory",
        "Reply",
        "ServiceLimits",
        "ToolCallRecord",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = tuple(sorted(_HOME))


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
