"""Errors as a person sees them: one line with what happened, one with what to do, an exit code.

Knows the error tree and click's errors; prints nowhere but on standard error.
"""

import os
import re
import sys
from contextvars import ContextVar
from errno import EACCES, EIO, ENOSPC, EPIPE, EROFS
from typing import TextIO

import click

from bridle.errors import (
    AgentError,
    BudgetReached,
    ConfigError,
    MissingKey,
    MissingModel,
    SessionError,
)

_LONGEST = 1000  # characters; some servers answer with whole pages
_NEXT = {
    ENOSPC: "Make room there.",
    EACCES: "Check the rights of the file and of its folder.",
    EROFS: "Make it writable, or use another folder.",
}
DONE, FAILED, USAGE, PERMISSION, BUDGET, NO_MODEL, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
CUT = 6  # the answer was cut off at its token limit


def report(error: BaseException) -> int:
    """Say it on standard error; the exit code that fits."""
    if isinstance(error, OSError) and (code := _unheard(error)) is not None:
        return code
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()  # a group without a command: its page, as it is
        return USAGE
    trace(error)
    message, hint, code = explain(error)
    complain(message, hint)
    return code


def _unheard(error: OSError) -> int | None:
    """The exit code when it is our own output that cannot be written; None for other errors."""
    if error.filename is not None or error.errno not in (EPIPE, EIO, ENOSPC):
        return None
    _forget(sys.stdout)
    if error.errno == EPIPE:
        return DONE  # whoever read us has seen enough
    if error.errno == EIO:  # the terminal is gone, and nobody is there to be told
        _forget(sys.stderr)
        return INTERRUPTED
    complain("the output cannot be written: no space is left on the device", "Make room there.")
    return FAILED


def trace(error: BaseException | None) -> None:
    """Where it happened, for those who asked to see it."""
    if error is not None and os.environ.get("BRIDLE_DEBUG"):
        import traceback

        from bridle.workspace.text import neutral

        click.echo(neutral("".join(traceback.format_exception(error))), err=True, nl=False)


HEARD: ContextVar[list[str] | None] = ContextVar("heard", default=None)  # instead of stderr


def complain(message: str, hint: str = "") -> None:
    """The two lines of an error; one, where a face that owns the terminal listens."""
    if (heard := HEARD.get()) is not None:
        heard.append(f"{message}. {hint}" if hint else message)
        return
    from bridle.cli.style import paint_for
    from bridle.workspace.text import one_line

    paint = paint_for(sys.stderr)
    lines = [f"{paint.red('bridle:')} {one_line(message, _LONGEST)}"]
    if hint:
        lines.append(f"  → {one_line(hint, _LONGEST)}")
    click.echo("\n".join(lines), err=True)


def explain(error: BaseException) -> tuple[str, str, int]:
    """What happened, what to do, and the exit code."""
    if isinstance(error, click.ClickException):
        return _usage(error)
    if isinstance(error, AgentError):
        return error.message, error.hint, code_of(error)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}", _NEXT.get(error.errno or 0, ""), FAILED
    from bridle.cli.installation import REPAIR, damage

    if damaged := damage():
        return f"{damaged} ({type(error).__name__}: {error})", REPAIR, FAILED
    return (
        f"something broke inside bridle: {type(error).__name__}: {error}",
        "This is a bug: run it again with BRIDLE_DEBUG=1 to see where, and report it.",
        FAILED,
    )


def code_of(error: AgentError) -> int:
    """What the caller got wrong is a usage error; the rest is a failure."""
    if isinstance(error, MissingKey | MissingModel):
        return NO_MODEL
    if isinstance(error, ConfigError | SessionError):
        return USAGE
    return BUDGET if isinstance(error, BudgetReached) else FAILED


def _usage(error: click.ClickException) -> tuple[str, str, int]:
    message, _, hint = _said(error).partition("\n")
    if _WORD.match(message):  # not the name of a file
        message = message[:1].lower() + message[1:]
    message = _NUMBER.sub(_number, message)
    context = getattr(error, "ctx", None)
    if not hint and context is not None:
        hint = f"See `{context.command_path} --help`."
    return message.rstrip("."), hint, error.exit_code


def _said(error: click.ClickException) -> str:
    """What click says, in our words where its own are odd."""
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if (name := _COMMAND.match(message)) and context is not None:
        return unknown_command(name[1], context)
    kind = getattr(getattr(error, "param", None), "type", None)
    if isinstance(error, click.MissingParameter) and isinstance(kind, click.Choice):
        return f"say which one: {', '.join(map(str, kind.choices))}"
    return _CHOICES.sub("", message)


def unknown_command(name: str, context: click.Context, advice: str = "") -> str:
    """That a group has no such command, and the nearest that it has."""
    from difflib import get_close_matches

    path, group = context.command_path, context.command
    known = group.list_commands(context) if isinstance(group, click.Group) else []
    near = get_close_matches(name, known, 1)
    other = advice or f"See `{path} --help`."
    return f"there is no command {name!r}\n" + (
        f"Did you mean `{path} {near[0]}`?" if near else other
    )


_COMMAND = re.compile(r"No such command '([^']*)'")
_CHOICES = re.compile(r"^Invalid value for '\{[^']*\}': ")  # such a parameter has no other name
_WORD = re.compile(r"[A-Z][a-z]*[ ']")
_NUMBER = re.compile(r"is not a valid (integer|float)(?: range)?\b")


def _number(found: re.Match[str]) -> str:
    """The names of click's types are for programmers."""
    return f"is not a {'whole ' * (found[1] == 'integer')}number"


def _forget(stream: TextIO) -> None:
    """Nobody reads this stream any more; what is still buffered must not raise at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
