"""The terminal as a face: a screen over a session's verbs. Importing this imports no Textual."""
