"""What is asked before the first prompt, as values; and who finds it out and does it. No widget."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from bridle.config.trust import FolderFile
from bridle.tui.house import SessionList
from bridle.workspace.text import one_line, quantity


class EarlierSessions(SessionList, Protocol):
    """The sessions of this user, before one is opened. `workspace` is the folder worked in."""

    workspace: str

    async def close(self) -> None:
        """Close what was opened to list them."""
        ...


class Lacking(Struct, frozen=True):
    """No model was found: what was looked for, and the models of local servers that answer."""

    looked: tuple[str, ...] = ()
    local: tuple[str, ...] = ()  # `ollama/NAME`


class Untrusted(Struct, frozen=True):
    """A folder whose own files do not count yet; `files` are as they were looked at, once."""

    root: Path
    files: tuple[FolderFile, ...]


class Preface(Protocol):
    """What whoever opens the screen finds out and does. Called in a thread; raises `AgentError`."""

    def theme(self) -> str:
        """The colours of the settings; `auto` where none are chosen, or a flag says which."""
        ...

    def untrusted(self) -> Untrusted | None:
        """What a person should be asked about the folder; None: nothing, or they said no to it."""
        ...

    def trust(self, shown: Untrusted) -> None:
        """Let exactly these bytes count."""
        ...

    def decline(self, shown: Untrusted) -> None:
        """Do not ask about these bytes again."""
        ...

    def earlier(self) -> "EarlierSessions | None":
        """The sessions to choose from; None if it is known which one is to be opened."""
        ...

    def resume(self, session_id: str) -> None:
        """Open that session."""
        ...

    def lacking(self) -> Lacking | None:
        """None where a model was named or a key was found."""
        ...

    def use(self, model: str) -> None:
        """That model, for this time."""
        ...


def trust_lines(files: Iterable[FolderFile]) -> list[tuple[str, str]]:
    """The files that are not trusted yet in full, then the names of those that are."""
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
                (f"cannot be read and does not count: {one_line(one.problem, 300)}", "warning")
            )
        else:
            text = one.data.decode("utf-8", "backslashreplace")
            lines += [(f"│ {line}", "") for line in text.removesuffix("\n").split("\n")]
    known = [one_line(one.name, 200) for one in found if one.trusted]
    if known:
        lines += [("", ""), (f"Trusted already, and unchanged: {', '.join(known)}", "muted")]
    return lines
