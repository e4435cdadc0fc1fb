"""Slash commands: what each does (`commands`), and what it needs of an interface."""
