"""What is found out about a command line while it is judged, and how a command is spelled.

Collects; decides nothing. The first reason of each kind is kept, for a person reads only one.
"""

from msgspec import Struct
from msgspec.structs import replace

from bridle.policy import Act, Search
from bridle.protocols.machine import Place


class Understood(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a command line would do, for the gate.

    `floor`: why it must never run. `guard`: why only a person may allow it. `opaque`: what was not
    understood. `cwd` is the folder in which the shell would stand at the end. `searches` are the
    commands in it that read every file of a folder.
    """

    acts: tuple[Act, ...] = ()
    floor: str = ""
    guard: str = ""
    opaque: str = ""
    cwd: str = ""
    searches: tuple[Search, ...] = ()


class Notes:
    """Acts and reasons, as they are found."""

    __slots__ = (
        "_seen",
        "acts",
        "floor",
        "guard",
        "muted",
        "opaque",
        "places",
        "searches",
        "swept",
    )

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.floor = ""
        self.guard = ""
        self.opaque = ""
        self.muted = False  # what is found is only there to be forbidden
        # Folders in which everything is read, and what takes care there.
        self.swept: dict[tuple[str, str], tuple[str, ...] | None] = {}
        self.searches: list[Search] = []
        self.places: dict[tuple[str, str], Place] = {}  # by folder and name: looked for once a line
        self._seen: set[Act] = set()

    def act(self, found: Act, at: int | None = None) -> None:
        """Note an act, once; `at` a place before others that belong to it."""
        if self.muted and not found.minor:
            found = replace(found, minor=True)
        if found not in self._seen:
            self._seen.add(found)
            self.acts.insert(len(self.acts) if at is None else at, found)

    def spelled_so(self, command: str) -> None:
        """The whole line is another spelling of its first command: it can be forbidden as such."""
        for at, found in enumerate(self.acts):
            if "shell" in found.names:
                if found.subject != command:
                    self.acts[at] = replace(found, also=(*found.also, command))
                return

    def forbid(self, reason: str) -> None:
        """It must never run."""
        self.floor = self.floor or reason

    def guarded(self, reason: str) -> None:
        """Only a person may allow it."""
        self.guard = self.guard or reason

    def unclear(self, reason: str) -> None:
        """This was not understood."""
        self.opaque = self.opaque or reason

    def told(self, cwd: str) -> Understood:
        """All of it, for the gate."""
        return Understood(
            acts=tuple(self.acts),
            floor=self.floor,
            guard=self.guard,
            opaque=self.opaque,
            cwd=cwd,
            searches=tuple(dict.fromkeys(self.searches)),
        )
