"""The real Claude Code as an agent of bridle, through the vendor's SDK (extra `claude`).

`agent` has `ClaudeCodeAgent`, which runs a prompt: it starts the program, once or again, and stops
it. `options` says how it is started, `process` is the connection to it. `hooks` asks the gate
before each of the program's calls, after `tool_mapping` has turned it into a call of our tools, and
turns the results back. `messages` turns what the program says into our events, and decides how a
run ended.
"""

from bridle.agents.claude_code.agent import ClaudeCodeAgent
from bridle.agents.claude_code.options import ClaudeCodeConfig

__all__ = ["ClaudeCodeAgent", "ClaudeCodeConfig"]
