"""Any program that speaks the Agent Client Protocol (ACP) over its pipes, as an agent of bridle.

`agent` has `AcpAgent`, which keeps one `session` for each of ours. A session starts the `program`,
talks to it through a `connection`, and runs one `turn` for each prompt, which follows what the
agent does with its own tools and asks the gate, after `tool_mapping` has turned each call into
calls of our tools. `client` reads, writes and runs what the agent has us do. `updates` translates
between the protocol and our events, in both directions.
"""

from bridle.agents.acp.agent import AcpAgent

__all__ = ["AcpAgent"]
