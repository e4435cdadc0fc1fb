"""The tools that a model can call, and the `@tool` decorator for tools of your own.

Each tool is a module named after it, with the description that the model reads in the `.md` file
beside it; `shell` has three tools. `builtin` lists them. `function` makes a tool of a typed
function, and `mcp` offers the tools of MCP servers.
"""
