"""Agents that can run a session's turns in place of bridle's own loop.

`base` has the names of the protocol that every agent implements. `claude_code` runs Claude Code,
`acp` any program that speaks the Agent Client Protocol, and `loop` our own loop in the same shape.
`session_history` tells an agent that has a conversation of its own about turns that others ran.
"""
