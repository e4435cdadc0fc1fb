"""The table of slash commands: name, argument, meaning, and where each works.

Full screen, REPL, completion and documentation read this table. What a command does is in
`tui/slash/commands.py`.
"""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

from msgspec import Struct

from bridle.policy import MODES

Where = Literal["everywhere", "screen"]
ARGUMENTS = "$ARGUMENTS"  # in a user's own command: what is typed after its name


class Command(Struct, frozen=True, kw_only=True):
    """A slash command. An argument in brackets, `[NAME]`, may be left out; `NAME` may not."""

    name: str
    argument: str = ""
    meaning: str
    where: Where = "everywhere"
    also: tuple[str, ...] = ()  # other names
    own: str = ""  # a user's own: the file that it comes from
    text: str = ""  # ... and what that says

    @property
    def spelled(self) -> str:
        """The command with its slash and its argument."""
        return f"/{self.name} {self.argument}".rstrip()

    @property
    def is_needy(self) -> bool:
        """Whether it needs its argument."""
        return bool(self.argument) and not self.argument.startswith("[")


def _command(
    name: str, argument: str, meaning: str, *also: str, where: Where = "everywhere"
) -> Command:
    return Command(name=name, argument=argument, meaning=meaning, also=also, where=where)


TABLE: tuple[Command, ...] = (
    _command("help", "[COMMAND]", "this list, or what one of them does"),
    _command("new", "", "a new session, in the mode of your settings", "clear"),
    _command("sessions", "[WORDS]", "the newest sessions and what each is doing"),
    _command("resume", "ID", "resume that session, or watch and answer it where it runs"),
    _command("fork", "[SEQ]", "continue in a copy of this session, from its end or a record"),
    _command("rewind", "[N]", "take the conversation back by N turns; files stay as they are"),
    _command("undo", "[TURN]", "restore the files that a turn changed; shows them first"),
    _command("model", "[NAME]", "switch to another model; without a name, choose from a list"),
    _command("agent", "[NAME]", "agent to use: loop (built in), claude-code, acp:COMMAND"),
    _command("mode", "[MODE]", f"what may run without asking: {', '.join(MODES)}"),
    _command("plan", "[WORDS]", "plan mode: read and plan, change nothing until you agree"),
    _command("tools", "", "the tools that the model has"),
    _command("mcp", "", "the MCP servers, and which of them are refused"),
    _command(
        "policy",
        "",
        "the rules in force, and what was allowed in this session",
        "permissions",
    ),
    _command("approvals", "", "what needs an answer, in all sessions"),
    _command("budget", "[MONEY]", "what was used of the limits; with a sum, lower the cost limit"),
    _command("cost", "", "what this session has used", "usage"),
    _command("compact", "", "shorten the conversation: the model writes a summary"),
    _command("rename", "TITLE", "give this session a title"),
    _command("search", "WORDS", "search for words in all sessions"),
    _command("export", "FILE", "write this session to FILE; as Markdown if it ends in .md"),
    _command("theme", "[NAME]", "dark, light or plain colours"),
    _command("doctor", "", "check the machine where the sessions are"),
    _command("copy", "[code]", "copy the last answer, or its last block of code", where="screen"),
    _command("editor", "", "write the prompt in your editor", where="screen"),
    _command("find", "[WORDS]", "search for words in this conversation", where="screen"),
    _command("quit", "", "leave; the session is kept", "exit", "q"),
)

_LOOSE = ("quit", "doctor", "export", "search")
_NAMED = {name: one for one in TABLE for name in (one.name, *one.also)}


def command_of(name: str, own: Iterable[Command] = ()) -> Command | None:
    """Return the command of that name, with or without its slash; built-in ones come first."""
    word = name.removeprefix("/")
    return _NAMED.get(word) or next((one for one in own if one.name == word), None)


def split(line: str) -> tuple[str, str]:
    """Split a line into the name of a command and the rest: `/mode auto` is mode, auto."""
    word, *rest = line.split(None, 1) or [""]
    return word.removeprefix("/"), rest[0].strip() if rest else ""


def command_line(text: str, own: Iterable[Command] = ()) -> str:
    """Return the command that a typed text is; empty if it is a prompt.

    A prompt may begin with a path: `/etc/hosts is broken`, or a file that was dragged here. `exit`
    and `quit` alone leave, as in a shell.
    """
    if text.strip() in ("exit", "quit"):
        return "/quit"
    if not text.startswith("/"):
        return ""
    word = text.split(None, 1)[0]
    is_path = "/" in word[1:] or os.path.lexists(word)
    return "" if is_path and command_of(word, own) is None else text


def is_loose(line: str) -> bool:
    """Whether what is typed after this command may overtake it: it is slow and changes nothing."""
    found = command_of(split(line)[0])
    return found is not None and found.name in _LOOSE


def nearest(name: str, own: Iterable[Command] = ()) -> str:
    """Return the name that was perhaps meant; empty if none is similar."""
    names = [*_NAMED, *(one.name for one in own)]
    found = get_close_matches(name.removeprefix("/"), names, 1)
    return found[0] if found else ""


def matching(start: str, own: Iterable[Command] = ()) -> tuple[Command, ...]:
    """Return the commands whose names begin so, for completion; an exact match comes first."""
    word = start.removeprefix("/")
    every = [*TABLE, *own]
    exact = [one for one in every if word == one.name]
    return tuple(exact + [one for one in every if one.name.startswith(word) and one not in exact])


def command_prompt(command: Command, arguments: str) -> str:
    """Return the prompt of a user's own command, as its file was when it was listed."""
    body = command.text
    if ARGUMENTS in body:
        return body.replace(ARGUMENTS, arguments)
    return f"{body}\n\n{arguments}".strip() if arguments else body
