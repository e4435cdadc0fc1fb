"""Tools of MCP servers: found, pinned, offered and called. Loads the SDK with the first server."""
