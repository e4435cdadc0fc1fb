"""The person's own editor on a text: `$VISUAL`, else `$EDITOR`, on a private file. No screen here.

Whoever calls lends the terminal to the editor meanwhile. What comes back is not neutralised here:
the composer does that with whatever is put into it.
"""

import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bridle.errors import AgentError, ConfigError

_LARGEST = 4_000_000  # bytes


def editor_of(environ: Mapping[str, str]) -> list[str]:
    """The command that the environment names. Raise `ConfigError` where it names none."""
    for name in ("VISUAL", "EDITOR"):
        said = environ.get(name, "").strip()
        if not said:
            continue
        try:
            command = shlex.split(said)
        except ValueError as error:
            raise ConfigError(f"{name} cannot be read: {error}", hint="Mend it.") from error
        if command:
            return command
    raise ConfigError("no editor is set", hint="Set EDITOR, for example: export EDITOR=nano")


def edited(text: str, environ: Mapping[str, str]) -> str:
    """The text after the person has left their editor. Raise `AgentError`; then nothing changed."""
    command = editor_of(environ)
    try:
        with tempfile.TemporaryDirectory(prefix="bridle-prompt-") as folder:
            path = Path(folder, "prompt.md")
            path.write_text(text, encoding="utf-8", errors="replace")
            return _left_by(command, path, environ)
    except OSError as error:
        said = f"no file can be written for the editor: {error.strerror}"
        raise AgentError("tool", said, hint="The prompt is as it was.") from error


def _left_by(command: Sequence[str], path: Path, environ: Mapping[str, str]) -> str:
    """What the editor left in the file."""
    try:
        done = subprocess.run([*command, str(path)], env=dict(environ), check=False)
    except OSError as error:
        said = f"{command[0]} cannot be started: {error.strerror}"
        raise ConfigError(said, hint="Check EDITOR. The prompt is as it was.") from error
    if done.returncode:
        said = f"{command[0]} ended with {done.returncode}"
        raise AgentError("tool", said, hint="The prompt is as it was.")
    return _read(path)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        said = f"what the editor wrote cannot be read: {error.strerror}"
        raise AgentError("tool", said, hint="The prompt is as it was.") from error
    if len(data) > _LARGEST:
        limit = f"{_LARGEST // 1_000_000} MB"
        raise AgentError("tool", f"what the editor wrote is longer than {limit}", hint=_SHORTER)
    return data.decode("utf-8", "replace").removesuffix("\n")


_SHORTER = "The prompt is as it was. Name the file with @ instead."
