"""The server under load: many who watch, and prompts beside a bare handler's."""
