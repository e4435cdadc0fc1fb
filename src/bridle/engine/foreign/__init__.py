"""A turn that another agent runs: Claude Code, an ACP program, or a class of the user's own.

`turn` starts the agent, stops it, and turns its end into the turn's. `session` is what the agent is
given: through it, it reports what it does, asks for permission and has our tools run. Its `Replies`
record the agent's text. `calls` takes its calls through the gate, and `budget` counts what it uses.
`agent` has an agent's name, and shuts it down.
"""
