"""The public names of the agent protocol. Whatever has this shape is an agent: no registration."""

from bridle.promises.agent import AgentResponse as AgentResponse
from bridle.promises.agent import AgentSession as AgentSession
from bridle.promises.agent import BaseAgent as BaseAgent
from bridle.promises.agent import CanUseTool as CanUseTool
from bridle.promises.agent import OnTextChunk as OnTextChunk
from bridle.promises.agent import OnToolActivity as OnToolActivity
from bridle.promises.agent import Permission as Permission
from bridle.promises.agent import RemainingBudget as RemainingBudget
from bridle.promises.agent import ToolActivity as ToolActivity

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
