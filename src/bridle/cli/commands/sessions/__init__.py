"""`bridle sessions`: the group; each command has a module of its own."""

import click

from bridle.cli.command_group import LazyGroup

TABLE = {
    "list": ("list:command", "List the newest sessions."),
    "show": ("show:command", "Show what happened in a session."),
    "search": ("search:command", "Search the text of all sessions, or of some."),
    "export": ("transfer:export", "Write a session as JSONL or Markdown, or print its head."),
    "import": ("transfer:import_", "Add a session from an exported file."),
    "fork": ("transfer:fork", "Copy a session, or its beginning, into a new session."),
    "rewind": ("edit:rewind", "Go back to an earlier point of the conversation."),
    "verify": ("verify:command", "Check that the log of a session is complete and unchanged."),
    "replay": ("replay:command", "Run a session again offline, and compare the results."),
    "rename": ("edit:rename", "Change the title of a session."),
    "tag": ("edit:tag", "Add tags to a session, or remove them."),
    "delete": ("transfer:delete", "Delete sessions permanently."),
    "stop": ("send:stop", "Interrupt a session that another process runs."),
    "send": ("send:send", "Send a prompt to a session, wherever it runs."),
}


@click.group(name="sessions", cls=LazyGroup, table=TABLE, package=__name__)
def command() -> None:
    """List, show, search, fork, rewind, check and export sessions.

    For ID, write a session's id, or the beginning of it or of its last part, as long as only one
    session matches.
    """
