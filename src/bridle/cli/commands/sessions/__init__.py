"""`bridle sessions`: the group; each command has a module of its own."""

import click

from bridle.cli.command_group import LazyGroup

TABLE = {
    "list": ("list:list_sessions", "The newest sessions."),
    "show": ("show:show", "What happened in a session, as a story."),
    "search": ("search:search", "Where something was said, in all sessions or in some."),
    "export": ("transfer:export", "A session as JSONL or Markdown; or its head, to be kept."),
    "import": ("transfer:import_", "A session from a file that was exported."),
    "fork": ("transfer:fork", "A new session that begins as another did, up to a record."),
    "rewind": ("edit:rewind", "Take the conversation back; files stay as they are."),
    "verify": ("verify:verify", "Is the log still what was written?"),
    "replay": ("replay:command", "Run it again offline, and see what comes out differently."),
    "rename": ("edit:rename", "Give a session a title."),
    "tag": ("edit:tag", "Add tags to a session, or take them away."),
    "delete": ("transfer:delete", "Delete sessions for good."),
    "stop": ("..posting:stop", "Interrupt a session that runs in another process."),
    "send": ("..posting:send", "Send a prompt to a session, wherever it runs."),
}


@click.group(name="sessions", cls=LazyGroup, table=TABLE, package=__name__)
def command() -> None:
    """List, show, search, fork, rewind, check and carry away sessions.

    An ID is a session's id, or a beginning of it (or of its last part) that no other has.
    """
