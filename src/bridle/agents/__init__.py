"""Agents that carry a session's turns: our own loop, Claude Code, and whatever speaks ACP."""
