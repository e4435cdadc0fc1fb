"""The person's own editor on a text, in a private file. No screen here.

Whoever calls lends the terminal to the editor meanwhile. What comes back is not neutralised here:
the composer does that with whatever is put into it.
"""

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bridle.errors import AgentError, ConfigError

_LARGEST = 4_000_000  # bytes
_USUAL = ("sensible-editor", "vim", "nano", "vi")
_UNCHANGED = "Your prompt is unchanged."


def editor_of(environ: Mapping[str, str]) -> list[str]:
    """The editor's command, found as `click.edit` finds it: `$VISUAL`, `$EDITOR`, or what there is.

    Raise `ConfigError` if the command cannot be read, or its program is not there.
    """
    path = environ.get("PATH")
    for name in ("VISUAL", "EDITOR"):
        try:
            command = shlex.split(environ.get(name, ""))
        except ValueError as error:
            hint = f"{_UNCHANGED} Set {name} to a command, for example: export {name}=nano"
            raise ConfigError(f"{name} cannot be read: {error}", hint=hint) from error
        if command and shutil.which(command[0], path=path) is None:
            said = f"{name} is set to {command[0]}, which cannot be found"
            raise ConfigError(said, hint=f"{_UNCHANGED} Set {name} to an editor that is installed.")
        if command:
            return command
    for program in _USUAL:
        if shutil.which(program, path=path) is not None:
            return [program]
    hint = f"{_UNCHANGED} Install one, or set EDITOR, for example: export EDITOR=nano"
    raise ConfigError("no editor was found", hint=hint)


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
        raise AgentError("tool", said, hint=_UNCHANGED) from error


def _left_by(command: Sequence[str], path: Path, environ: Mapping[str, str]) -> str:
    """What the editor left in the file."""
    try:
        done = subprocess.run([*command, str(path)], env=dict(environ), check=False)
    except OSError as error:
        said = f"{command[0]} cannot be started: {error.strerror}"
        raise ConfigError(said, hint=f"{_UNCHANGED} Check VISUAL and EDITOR.") from error
    if done.returncode:
        said = f"the editor {command[0]} ended with exit code {done.returncode}"
        raise AgentError("tool", said, hint=_UNCHANGED)
    return _read(path)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        said = f"what the editor wrote cannot be read: {error.strerror}"
        raise AgentError("tool", said, hint=_UNCHANGED) from error
    if len(data) > _LARGEST:
        limit = f"{_LARGEST // 1_000_000} MB"
        raise AgentError("tool", f"what the editor wrote is longer than {limit}", hint=_SHORTER)
    return data.decode("utf-8", "replace").removesuffix("\n")


_SHORTER = f"{_UNCHANGED} Name the file with @ instead."
