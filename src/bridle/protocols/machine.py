"""What judging a command or a path needs to know about the machine.

`workspace/machine.py` implements `Machine` for a real folder. The analysis of commands stays pure.
"""

from typing import Literal, Protocol

from msgspec import Struct

Restriction = Literal["", "ask", "deny"]


class Place(Struct, frozen=True, gc=False, omit_defaults=True):
    """Where a path leads after following every link.

    If it is `inside`, `path` is from the root and with `/` (`.` for the root itself); otherwise it
    is the real absolute path. `temporary` means outside, but in the command's own temporary folder,
    or a device that swallows everything. `reading` and `writing` say who may do so: with `ask` only
    a person may allow it, with `deny` nobody. `why` says what it is, for a person.
    """

    path: str
    inside: bool
    reading: Restriction = ""
    writing: Restriction = ""
    why: str = ""
    temporary: bool = False


class Machine(Protocol):
    """The folder that commands run in, and what lies around it. Never raises."""

    @property
    def root(self) -> str:
        """The real path of the workspace."""
        ...

    @property
    def home(self) -> str:
        """The person's home folder, which `~` stands for."""
        ...

    def place(self, path: str, cwd: str, *, read_only: bool = False) -> Place:
        """Return where a path leads that is named in that folder (absolute).

        With `read_only`, what restricts only writing is not looked up, and `writing` is `deny`.
        """
        ...

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:
        """Return the names that a pattern with `*`, `?` or `[…]` stands for, as in the shell.

        None if there are too many, or if that is unclear.
        """
        ...

    def sensitive_files(self, folder: str, cwd: str) -> tuple[str, ...] | None:
        """Return the sensitive files and the links below a folder, as paths from that folder.

        None if there is too much to look at. Empty also if it is not a folder.
        """
        ...

    def is_repository_safe(self, cwd: str) -> bool:
        """Whether git can read the repository of a folder without running code from its config."""
        ...

    def is_local_program(self, name: str) -> bool:
        """Whether a program that is called by this name would be one in the workspace."""
        ...
