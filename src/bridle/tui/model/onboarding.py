"""What is asked before the first prompt, and who finds it out; and a folder's files as text."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from bridle.config.trust import FolderFile
from bridle.tui.session_backend import SessionList
from bridle.workspace.text import one_line, quantity


class EarlierSessions(SessionList, Protocol):
    """This user's sessions, before one is opened. `workspace` is the current folder."""

    workspace: str

    async def close(self) -> None:
        """Close what was opened to list them."""
        ...


class ModelSearch(Struct, frozen=True):
    """No model was found: what was looked for, and the models of local servers."""

    looked: tuple[str, ...] = ()
    local: tuple[str, ...] = ()  # `ollama/NAME`


class UntrustedFolder(Struct, frozen=True):
    """A folder whose own files are not trusted yet, with the files as they were read."""

    root: Path
    files: tuple[FolderFile, ...]


class StartupChecks(Protocol):
    """Find out what to ask at the start. Called in a thread; raises `AgentError`."""

    def theme(self) -> str:
        """Return the theme of the settings; `auto` if none is set or a flag chooses one."""
        ...

    def untrusted_folder(self) -> UntrustedFolder | None:
        """Return the files to ask about; None if there are none or they were declined."""
        ...

    def trust(self, shown: UntrustedFolder) -> None:
        """Trust exactly these bytes."""
        ...

    def decline(self, shown: UntrustedFolder) -> None:
        """Do not ask about these bytes again."""
        ...

    def earlier_sessions(self) -> "EarlierSessions | None":
        """Return the sessions to choose from; None if it is known which one to open."""
        ...

    def resume(self, session_id: str) -> None:
        """Open that session."""
        ...

    def missing_model(self) -> ModelSearch | None:
        """Return what was looked for; None if a model was named or a key was found."""
        ...

    def use(self, model: str) -> None:
        """Use that model this time."""
        ...


def trust_lines(files: Iterable[FolderFile]) -> list[tuple[str, str]]:
    """Return the untrusted files in full, made neutral, then the names of the trusted ones."""
    found = tuple(files)
    lines: list[tuple[str, str]] = []
    for one in found:
        if one.trusted:
            continue
        lines += [("", "")] if lines else []
        size = quantity(len(one.data), "byte")
        name = one_line(one.name, 200)
        lines.append((f"{name}  {size}" if not one.problem else name, "head"))
        if one.problem:
            lines.append(
                (f"cannot be read and is ignored: {one_line(one.problem, 300)}", "warning")
            )
        else:
            text = one.data.decode("utf-8", "backslashreplace")
            lines += [(f"│ {line}", "") for line in text.removesuffix("\n").split("\n")]
    known = [one_line(one.name, 200) for one in found if one.trusted]
    if known:
        lines += [("", ""), (f"Already trusted and unchanged: {', '.join(known)}", "muted")]
    return lines
