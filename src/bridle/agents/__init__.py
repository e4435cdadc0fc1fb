"""Agents that can run a session's turns in place of bridle's own loop.

`base` has the names of the protocol that every agent implements. `claude_code` is the real Claude
Code; `acp` is any program that speaks the Agent Client Protocol; `loop` offers our own loop in the
same shape. `session_history` is what an agent with a conversation of its own is told of turns that
others ran.
"""
