"""Errors as a person sees them: a line with what happened, a line with what to do, an exit code.

This is the only place that translates errors. It prints on standard error.
"""

import os
import re
import sys
from contextvars import ContextVar
from errno import EACCES, EIO, ENOSPC, EPIPE, EROFS
from typing import TextIO

import click

from bridle.cli.style import paint_for
from bridle.errors import (
    AgentError,
    BudgetReached,
    ConfigError,
    MissingKey,
    MissingModel,
    SessionError,
    UsageError,
)
from bridle.workspace.text import neutral, one_line

_LONGEST = 1000  # characters; some servers answer with whole pages
_NEXT = {
    ENOSPC: "Free some space there.",
    EACCES: "Check the permissions of the file and of its folder.",
    EROFS: "Make it writable, or use another folder.",
}
DONE, FAILED, USAGE, PERMISSION, BUDGET, NO_MODEL, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
CUT = 6  # the answer was cut off at its token limit


def report(error: BaseException) -> int:
    """Print an error on standard error, and return the exit code."""
    if isinstance(error, OSError) and (code := _output_failure(error)) is not None:
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


def _output_failure(error: OSError) -> int | None:
    """Return the exit code if our own output cannot be written; None for other errors."""
    if error.filename is not None or error.errno not in (EPIPE, EIO, ENOSPC):
        return None
    _discard(sys.stdout)
    if error.errno == EPIPE:
        return DONE  # the reader has seen enough
    if error.errno == EIO:  # the terminal is gone
        _discard(sys.stderr)
        return INTERRUPTED
    complain("the output cannot be written: the disk is full", "Free some space there.")
    return FAILED


def trace(error: BaseException | None) -> None:
    """Print the traceback if BRIDLE_DEBUG is set."""
    if error is not None and os.environ.get("BRIDLE_DEBUG"):
        import traceback

        click.echo(neutral("".join(traceback.format_exception(error))), err=True, nl=False)


# An interface that owns the terminal collects messages here.
COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def complain(message: str, hint: str = "") -> None:
    """Print an error or a warning: one line, and one with the hint.

    While an interface collects messages, it gets them instead.
    """
    if (collected := COLLECTED.get()) is not None:
        collected.append(f"{message}. {hint}" if hint else message)
        return
    paint = paint_for(sys.stderr)
    lines = [f"{paint.red('bridle:')} {one_line(message, _LONGEST)}"]
    if hint:
        lines.append(f"  → {one_line(hint, _LONGEST)}")
    click.echo("\n".join(lines), err=True)


def explain(error: BaseException) -> tuple[str, str, int]:
    """Return what happened, what to do, and the exit code."""
    if isinstance(error, click.ClickException):
        return _explain_click_error(error)
    if isinstance(error, AgentError):
        return error.message, error.hint, code_of(error)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}", _NEXT.get(error.errno or 0, ""), FAILED
    from bridle.cli.installation import REPAIR, damage

    if damaged := damage():
        return f"{damaged} ({type(error).__name__}: {error})", REPAIR, FAILED
    return (
        f"internal error: {type(error).__name__}: {error}",
        "This is a bug in bridle. Run it again with BRIDLE_DEBUG=1 for a traceback, and report it.",
        FAILED,
    )


def code_of(error: AgentError) -> int:
    """Return the exit code: mistakes of the caller are usage errors, the rest are failures."""
    if isinstance(error, MissingKey | MissingModel):
        return NO_MODEL
    if isinstance(error, ConfigError | SessionError):
        return USAGE
    return BUDGET if isinstance(error, BudgetReached) else FAILED


def _explain_click_error(error: click.ClickException) -> tuple[str, str, int]:
    message = _message(error)
    context = getattr(error, "ctx", None)
    if (name := _COMMAND.match(message)) and context is not None:
        return explain(unknown_command(name[1], context))
    if _WORD.match(message):  # not the name of a file
        message = message[:1].lower() + message[1:]
    message = _NUMBER.sub(_number, message)
    hint = f"See `{context.command_path} --help`." if context is not None else ""
    return message.rstrip("."), hint, error.exit_code


def _message(error: click.ClickException) -> str:
    """Return click's message, or a clearer one."""
    message = error.format_message()
    kind = getattr(getattr(error, "param", None), "type", None)
    if isinstance(error, click.MissingParameter) and isinstance(kind, click.Choice):
        return f"choose one of {', '.join(map(str, kind.choices))}"
    return _CHOICES.sub("", message)


def unknown_command(name: str, context: click.Context, advice: str = "") -> UsageError:
    """Return the error that a group has no such command, with the most similar one as a hint."""
    from difflib import get_close_matches

    path, group = context.command_path, context.command
    known = group.list_commands(context) if isinstance(group, click.Group) else []
    near = get_close_matches(name, known, 1)
    other = advice or f"See `{path} --help`."
    hint = f"Did you mean `{path} {near[0]}`?" if near else other
    return UsageError(f"there is no command {name!r}", hint=hint)


_COMMAND = re.compile(r"No such command '([^']*)'")
_CHOICES = re.compile(r"^Invalid value for '\{[^']*\}': ")  # such a parameter has no other name
_WORD = re.compile(r"[A-Z][a-z]*[ ']")
_NUMBER = re.compile(r"is not a valid (integer|float)(?: range)?\b")


def _number(found: re.Match[str]) -> str:
    """Return a plain name for one of click's types."""
    return f"is not a {'whole ' * (found[1] == 'integer')}number"


def _discard(stream: TextIO) -> None:
    """Send the rest of a stream to /dev/null: what is still buffered must not raise at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
