"""Faces that are reached over a wire: the HTTP service, whose parts lie here side by side, and
`mcp`, `acp` and `agui`, each a package of its own that knows the other two not at all."""
