"""The paths that a command uses: resolved, compared with what is protected, and noted.

Paths are also noticed in words whose use is not known, since they may name credentials. Programs
that read everything in a folder also read the credentials in it.
"""

import re
from collections.abc import Iterator, Sequence
from posixpath import join, normpath

from bridle.command_analysis.argv import Arg, Known
from bridle.command_analysis.findings import Notes
from bridle.command_analysis.variables import emptied, likely
from bridle.policy import Act, Does, Search, may_match
from bridle.protocols.machine import Machine, Place

STREAMS = frozenset({"-", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/null", "/dev/tty"})
_SOURCES = frozenset({"/dev/zero", "/dev/urandom", "/dev/random"})
_HANDLE = re.compile(r"/dev/fd/\d+").fullmatch
_SOCKETS = ("/dev/tcp/", "/dev/udp/")
_WIDE = re.compile(r"[*?.\[\]!]*[*?][*?.\[\]!]*").fullmatch  # a pattern that means "everything"
_SYSTEM = ("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/opt", "/root", "/usr", "/var")
_SHOWN = 120  # characters of a path in a reason


def shown(path: str) -> str:
    """A path in a reason, not longer than one can read."""
    return path if len(path) <= _SHOWN else path[: _SHOWN - 1] + "…"


class Reach:
    """The paths of one command, in the folder that it runs in.

    `several`: that is one of several folders, because a `cd` before it may fail.
    """

    __slots__ = ("_wide", "folder", "machine", "notes", "several")

    def __init__(
        self, machine: Machine, folder: str, notes: Notes, *, several: bool = False
    ) -> None:
        self.several = several
        self.machine = machine
        self.folder = folder
        self.notes = notes
        self._wide: set[str] = set()

    @property
    def within(self) -> str:
        """The folder, where it is not the root."""
        return "" if self.folder == self.machine.root else self.folder

    def place(self, text: str) -> Place:
        """Where a path leads from here."""
        places, key = self.notes.places, (self.folder, text)
        found = places.get(key)
        if found is None:
            found = places[key] = self.machine.place(text, self.folder)
        return found

    def reads(self, arg: Arg, *, inside: bool = True) -> str:
        """It reads that path; not `inside`: only that it is there, not what is in it."""
        text = self._text(arg)
        if not text or self._is_stream(text) or text in _SOURCES:
            return ""
        place = self.place(text)
        also = (text,) if text != place.path else ()
        self.notes.act(Act(("read",), place.path, "reads", "", also, True, True))
        if not inside and place.reading == "ask" and place.inside:
            return ""
        return self.judged_read(place)

    def judged_read(self, place: Place) -> str:
        """May that be read?"""
        if place.reading == "deny":
            self.notes.forbid(f"reads {shown(place.path)}{_why(place)}")
        elif place.reading == "ask":
            self.notes.guarded(f"reads {shown(place.path)}{_why(place)}")
        if place.inside or place.temporary:
            return ""
        return f"reads {shown(place.path)}, outside the workspace"

    def writes(self, arg: Arg, *, minor: bool = True) -> str:
        """It writes that path."""
        text = self._text(arg)
        if not text or (text != "-" and self._is_stream(text)):
            return ""
        place = self.place(text)
        reason = f"writes {shown(place.path)}"
        also = (text,) if text != place.path else ()
        does: Does = "edits" if place.inside or place.temporary else "changes"
        self.notes.act(
            Act(("write",), place.path, does, "" if minor else reason, also, True, minor)
        )
        self._judged_write(place, reason)
        return reason

    def deletes(self, arg: Arg, *, deep: bool) -> str:
        """It deletes that path, and with `deep` everything in it."""
        self._look_wide(arg, deep)
        text = self._text(arg)
        if not text:
            self._if_empty(arg, deep)
            return "deletes what cannot be known before it runs"
        place = self.place(text)
        reason = f"deletes {shown(place.path)}" + (" and everything in it" if deep else "")
        also = (text,) if text != place.path else ()
        self.notes.act(Act(("write",), place.path, "changes", "", also, True, True))
        self._judged_write(place, reason)
        if place.inside:
            self._judged_delete(place.path, deep)
        return reason

    def runs_program(self, place: Place) -> None:
        """It runs what lies there, which is a way of reading it."""
        self.notes.act(Act(("read",), place.path, "reads", is_path=True, minor=True))
        if place.reading == "deny":
            self.notes.forbid(f"runs {shown(place.path)}{_why(place)}")
        elif place.reading == "ask":
            self.notes.guarded(f"runs {shown(place.path)}{_why(place)}")

    def runs(self, arg: Arg) -> str:
        """It runs the script at that path."""
        text = self._text(arg)
        if not text or self._is_stream(text):
            return ""
        place = self.place(text)
        self.runs_program(place)
        where = "" if place.inside else ", outside the workspace"
        return f"runs {shown(place.path)}{where}"

    def _judged_write(self, place: Place, reason: str) -> None:
        if place.writing == "deny":
            self.notes.forbid(reason + _why(place))
        elif not place.inside and not place.temporary:
            self.notes.forbid(f"{reason}, outside the workspace")
        elif place.writing == "ask":
            self.notes.guarded(reason + _why(place))

    def _judged_delete(self, path: str, deep: bool) -> None:
        low = path.lower()
        if low == "." and deep:
            self.notes.forbid("deletes the workspace itself")
        elif low == ".git" or low.endswith("/.git"):
            self.notes.forbid(f"deletes {shown(path)}, the history of the repository")
        elif low.startswith(".git/") or "/.git/" in low:
            self.notes.guarded(f"deletes {shown(path)}, a part of the repository's history")

    def _look_wide(self, arg: Arg, deep: bool) -> None:
        """A pattern that means everything in a folder is that folder."""
        pattern = arg.pattern or ("" if arg.known else arg.text)
        if not pattern or not deep or pattern in self._wide:
            return
        self._wide.add(pattern)
        if not arg.known:
            pattern = likely(pattern, self.machine.home, self.folder, self.machine.root)
        folder, slash, name = pattern.rpartition("/")
        if not _WIDE(name):
            return
        place = self.place(folder or ("/" if slash else "."))
        if not place.inside and not place.temporary:
            self.notes.forbid(f"deletes everything in {shown(place.path)}, outside the workspace")
        elif place.inside:
            self._judged_delete(place.path, deep)

    def _if_empty(self, arg: Arg, deep: bool) -> None:
        """`rm -rf "$X/"` deletes everything when `$X` is empty."""
        text = emptied(arg.text, self.machine.home, self.folder, self.machine.root)
        folder = text.rpartition("/")[0] + "/" if _WIDE(text.rpartition("/")[2]) else text
        if not deep or not folder.strip():
            return
        place = self.place(folder)
        whole = place.path in (*_SYSTEM, self.machine.home) or (place.inside and place.path == ".")
        if whole:
            self.notes.guarded(f"deletes {shown(place.path)} if a variable is empty")

    def _text(self, arg: Arg) -> str:
        """The path as far as it is known; nothing where it is not."""
        if arg.known:
            return arg.text
        return likely(arg.text, self.machine.home, self.folder, self.machine.root)

    def _is_stream(self, text: str) -> bool:
        if text.startswith(_SOCKETS):
            self.notes.forbid(f"opens a network connection from the shell: {shown(text)}")
        return text in STREAMS or _HANDLE(text) is not None


def _why(place: Place) -> str:
    return f": {place.why}" if place.why else ", which is protected"


_MOST_WORDS = 32  # words that are looked at
_LONGEST = 512  # characters of one
_VALUE = re.compile(r"[^=@]*[=@](.+)|-[A-Za-z](.+)", re.DOTALL)


def note_named_paths(entry: Known | None, words: Sequence[Arg], reach: Reach) -> None:
    """The words of a command; what its entry says of each of them has been said already."""
    if entry is not None and not (_hands_on(entry) or _is_strange(entry, words)):
        return
    for word in words[:_MOST_WORDS]:
        for text in _spellings(word):
            reach.judged_read(reach.place(text))


def _hands_on(entry: Known) -> bool:
    """Does it take words that only the program itself knows the meaning of?"""
    return entry.does != "reads" and not entry.verbs and entry.operands.endswith("text*")


def _is_strange(entry: Known, words: Sequence[Arg]) -> bool:
    """Is what follows no verb that the program is known by (`openssl rsa`)?"""
    verb = next((word.text for word in words if not word.text.startswith("-")), "")
    return entry.does != "reads" and bool(entry.verbs) and verb not in entry.verbs


def _spellings(word: Arg) -> Iterator[str]:
    """The paths that a word may hold: `x`, `--in=x`, `-ix`, `@x`."""
    if not word.known or not 1 < len(word.text) <= _LONGEST:
        return
    if not word.text.startswith("-") and "=" not in word.text:
        yield word.text
    if found := _VALUE.fullmatch(word.text):
        yield found[1] or found[2]


# Programs that read everything in a folder. The machine is asked once per folder and command line.


_MOST_FOLDERS = 16  # folders of one line
_SOURCE = re.compile(
    r"\*\.(?:py|pyi|js|jsx|ts|tsx|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|md|rst|css|html)"
).fullmatch


def sweep(folder: Arg, names: tuple[str, ...], reach: Reach, *, links: bool = False) -> list[str]:
    """Everything in a folder is read that has such a name: what takes care, and why it asks.

    With `links`, they are followed as well.
    """
    if names and not links and all(map(_SOURCE, names)):
        return []  # nobody keeps a key in one of these, and looking takes longer than the rest
    found = _below(folder, reach)
    if found is None:
        return [f"{shown(folder.text)} has too many files to look for credentials in them"]
    reasons = []
    leads_out = links or (bool(found) and not reach.place(folder.text).inside)
    for path in found:
        if may_match(path.rpartition("/")[2], names):
            place = reach.place(f"{folder.text}/{path}")
            if place.inside or leads_out:
                reasons.append(reach.judged_read(place))
    return list(filter(None, reasons))[:1]


def _below(folder: Arg, reach: Reach) -> tuple[str, ...] | None:
    swept = reach.notes.swept
    key = reach.folder, folder.text
    if key not in swept:
        if len(swept) >= _MOST_FOLDERS or None in swept.values():
            return None
        swept[key] = reach.machine.sensitive_files(folder.text, reach.folder)
    return swept[key]


def note_search(name: str, args: Sequence[Arg], reach: Reach) -> None:
    """Note a command that reads every file of a folder; rules may be about some of them."""
    program = name.rpartition("/")[2]
    words = [arg.text for arg in args]
    if program in _COMPARING or program in _GREPS:
        if not any(map(_is_recursive, words)):
            return
    elif program not in _SEARCHING:
        return
    paths = [word for word in words if word[:1] != "-"]
    if program not in _COMPARING and not any(word.startswith(_PATTERN_FLAGS) for word in words):
        paths = paths[1:]  # the first is what is looked for
    folder = reach.folder
    reach.notes.searches.append(
        Search(folder, tuple(normpath(join(folder, path)) for path in paths))
    )


_SEARCHING = frozenset({"rg", "ripgrep", "ag", "ack", "git grep"})
_GREPS = frozenset({"grep", "egrep", "fgrep", "zgrep"})
_COMPARING = frozenset({"diff"})
_PATTERN_FLAGS = ("-e", "-f", "--regexp", "--file")
_RECURSIVE = ("--recursive", "--dereference-recursive", "--directories=recurse", "recurse")


def _is_recursive(word: str) -> bool:
    is_short = word[:1] == "-" and word[:2] != "--"
    return word in _RECURSIVE or (is_short and ("r" in word or "R" in word))
