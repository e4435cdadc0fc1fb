"""The terminal: how soon it opens, how soon a key is seen, long sessions, and memory."""
