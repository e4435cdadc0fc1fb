"""What has to be known of the machine to judge a command or a path: asked for, never assumed.

`workspace/machine.py` keeps the promise for a real folder; the judge of commands stays pure.
"""

from typing import Literal, Protocol

from msgspec import Struct

Restriction = Literal["", "ask", "deny"]


class Place(Struct, frozen=True, gc=False, omit_defaults=True):
    """Where a path leads, every link followed.

    `path` is from the root and with `/` where it is `inside` (`.` for the root itself), the real
    absolute path otherwise. `temporary`: outside, but in the command's own temporary folder, or a
    device that swallows everything. `reading` and `writing` say what care it takes: `deny` is for
    nobody, `ask` for a person alone; `why` says what it is, in words for a person.
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

    def place(self, path: str, cwd: str) -> Place:
        """Where a path leads that is named in that folder (absolute)."""
        ...

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:
        """The names that a pattern with `*`, `?` or `[…]` stands for, as the shell would have them.

        None where there are too many, or where it cannot be said.
        """
        ...

    def sensitive_files(self, folder: str, cwd: str) -> tuple[str, ...] | None:
        """What takes care to read below a folder, and the links there, as paths from that folder.

        None where there is too much to look at. Empty also where it is no folder.
        """
        ...

    def is_repository_safe(self, cwd: str) -> bool:
        """Can git read the repository of that folder without its configuration running code?"""
        ...

    def is_local_program(self, name: str) -> bool:
        """Would a program that is called by that name alone be one of the workspace's own?"""
        ...
