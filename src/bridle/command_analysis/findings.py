"""What is found out about a command line while it is judged, and the judgement that it adds up to.

Findings are only collected here, and decide nothing. Of the reasons of each kind only the first is
kept, because a person reads only one.
"""

from msgspec import Struct
from msgspec.structs import replace

from bridle.policy import Act, Search
from bridle.protocols.machine import Place


class CommandAnalysis(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a command line would do, for the gate.

    `floor`: why it must never run. `guard`: why only a person may allow it. `opaque`: what was not
    understood. `cwd` is the shell's folder at the end. `searches` are the commands in it that read
    every file of a folder.
    """

    acts: tuple[Act, ...] = ()
    floor: str = ""
    guard: str = ""
    opaque: str = ""
    cwd: str = ""
    searches: tuple[Search, ...] = ()


class Findings:
    """The acts of a command line, and the reasons against it, so far."""

    __slots__ = (
        "_seen",
        "acts",
        "floor",
        "guard",
        "only_forbids",
        "opaque",
        "places",
        "searched_folders",
        "searches",
    )

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.floor = ""
        self.guard = ""
        self.opaque = ""
        self.only_forbids = False  # new acts are guesses, which rules can only forbid
        # Folders in which every file is read, with the sensitive files there; None for too many.
        self.searched_folders: dict[tuple[str, str], tuple[str, ...] | None] = {}
        self.searches: list[Search] = []
        self.places: dict[tuple[str, str], Place] = {}  # by folder and path, each resolved once
        self._seen: set[Act] = set()

    def add_act(self, act: Act, index: int | None = None) -> None:
        """Add an act unless it is there already, at `index` or else at the end."""
        if self.only_forbids and not act.minor:
            act = replace(act, minor=True)
        if act not in self._seen:
            self._seen.add(act)
            self.acts.insert(len(self.acts) if index is None else index, act)

    def add_spelling(self, command: str) -> None:
        """Make the whole line another spelling of its first command: rules can forbid it so."""
        for index, act in enumerate(self.acts):
            if "shell" in act.names:
                if act.subject != command:
                    self.acts[index] = replace(act, also=(*act.also, command))
                return

    def forbid(self, reason: str) -> None:
        """Note why it must never run."""
        self.floor = self.floor or reason

    def require_person(self, reason: str) -> None:
        """Note why only a person may allow it."""
        self.guard = self.guard or reason

    def add_doubt(self, reason: str) -> None:
        """Note what was not understood."""
        self.opaque = self.opaque or reason

    def to_judgement(self, cwd: str) -> CommandAnalysis:
        """Return the judgement for the gate."""
        return CommandAnalysis(
            acts=tuple(self.acts),
            floor=self.floor,
            guard=self.guard,
            opaque=self.opaque,
            cwd=cwd,
            searches=tuple(dict.fromkeys(self.searches)),
        )
