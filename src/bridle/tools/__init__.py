"""The tools that a model can call, and the `@tool` decorator for tools of your own.

A tool is a module named after it, with the description that the model reads in the `.md` file
beside it. Three tools run commands (`shell`), and four are about the session itself
(`session_tools`). `builtin` lists them all. `function` makes a tool of a typed function, and `mcp`
offers the tools of MCP servers.
"""
