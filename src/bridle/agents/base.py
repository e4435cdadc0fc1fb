"""The public names of the agent protocol. Whatever has this shape is an agent: no registration."""

from bridle.protocols.agent import AgentResponse as AgentResponse
from bridle.protocols.agent import AgentSession as AgentSession
from bridle.protocols.agent import BaseAgent as BaseAgent
from bridle.protocols.agent import CanUseTool as CanUseTool
from bridle.protocols.agent import OnTextChunk as OnTextChunk
from bridle.protocols.agent import OnToolActivity as OnToolActivity
from bridle.protocols.agent import Permission as Permission
from bridle.protocols.agent import RemainingBudget as RemainingBudget
from bridle.protocols.agent import ToolActivity as ToolActivity

__all__ = [
    "AgentResponse",
    "AgentSession",
    "BaseAgent",
    "CanUseTool",
    "OnTextChunk",
    "OnToolActivity",
    "Permission",
    "RemainingBudget",
    "ToolActivity",
]
