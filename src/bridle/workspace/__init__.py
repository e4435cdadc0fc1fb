"""The folder that the model works on: its paths, and the text that comes out of it."""
