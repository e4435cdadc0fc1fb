"""Edit a text in the user's own editor, in a private file.

The caller suspends the screen meanwhile. The result is not made neutral here: the composer does
that with whatever is put into it.
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


def find_editor(environ: Mapping[str, str]) -> list[str]:
    """Return the editor's command: `$VISUAL`, `$EDITOR`, or the first usual one.

    Raise `ConfigError` if the command cannot be read or its program does not exist.
    """
    path = environ.get("PATH")
    for name in ("VISUAL", "EDITOR"):
        try:
            command = shlex.split(environ.get(name, ""))
        except ValueError as error:
            hint = f"{_UNCHANGED} Set {name} to a command, for example: export {name}=nano"
            raise ConfigError(f"{name} cannot be read: {error}", hint=hint) from error
        if command and shutil.which(command[0], path=path) is None:
            said = f"{name} is set to {command[0]}, which was not found"
            raise ConfigError(said, hint=f"{_UNCHANGED} Set {name} to an editor that is installed.")
        if command:
            return command
    for program in _USUAL:
        if shutil.which(program, path=path) is not None:
            return [program]
    hint = f"{_UNCHANGED} Install one, or set EDITOR, for example: export EDITOR=nano"
    raise ConfigError("no editor was found", hint=hint)


def edit_text(text: str, environ: Mapping[str, str]) -> str:
    """Return the text as the user left it. If `AgentError` is raised, nothing changed."""
    command = find_editor(environ)
    try:
        with tempfile.TemporaryDirectory(prefix="bridle-prompt-") as folder:
            path = Path(folder, "prompt.md")
            path.write_text(text, encoding="utf-8", errors="replace")
            return _run_editor(command, path, environ)
    except OSError as error:
        said = f"cannot write a file for the editor: {error.strerror}"
        raise AgentError("tool", said, hint=_UNCHANGED) from error


def _run_editor(command: Sequence[str], path: Path, environ: Mapping[str, str]) -> str:
    """Run the editor, and return what it left in the file."""
    try:
        done = subprocess.run([*command, str(path)], env=dict(environ), check=False)
    except OSError as error:
        said = f"cannot start {command[0]}: {error.strerror}"
        raise ConfigError(said, hint=f"{_UNCHANGED} Check VISUAL and EDITOR.") from error
    if done.returncode:
        said = f"the editor {command[0]} exited with code {done.returncode}"
        raise AgentError("tool", said, hint=_UNCHANGED)
    return _read(path)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        said = f"cannot read what the editor wrote: {error.strerror}"
        raise AgentError("tool", said, hint=_UNCHANGED) from error
    if len(data) > _LARGEST:
        limit = f"{_LARGEST // 1_000_000} MB"
        raise AgentError("tool", f"what the editor wrote is longer than {limit}", hint=_SHORTER)
    return data.decode("utf-8", "replace").removesuffix("\n")


_SHORTER = f"{_UNCHANGED} Refer to a file with @ instead."
