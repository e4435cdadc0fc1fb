"""The tools of a chat: their definition, who may call them, and how they are served."""
