"""Tools of MCP servers.

`servers` offers the tools of all servers of an engine, and with them the tool `mcp`, with which the
model looks for more. `server` connects to one server when it is needed and compares its tools with
those that the person has accepted (`pins`). `connection`, `transports`, `message_filter` and
`oauth` use the official SDK, which takes a second to load; they are imported with the first
connection.
"""
