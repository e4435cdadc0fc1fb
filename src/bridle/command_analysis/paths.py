"""The paths that a command uses: where they lead, and whether they are protected.

Words whose use is not known are checked as well, because they may name credentials. A program that
reads everything in a folder also reads the credentials in it.
"""

import re
from collections.abc import Iterator, Sequence
from posixpath import join, normpath

from bridle.command_analysis.argv import Arg, Program
from bridle.command_analysis.findings import Findings
from bridle.command_analysis.variables import likely_value, value_if_empty
from bridle.policy import Act, Does, Search, may_match
from bridle.protocols.machine import Machine, Place

STREAMS = frozenset({"-", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/null", "/dev/tty"})
_SOURCES = frozenset({"/dev/zero", "/dev/urandom", "/dev/random"})
_HANDLE = re.compile(r"/dev/fd/\d+").fullmatch
_SOCKETS = ("/dev/tcp/", "/dev/udp/")
_EVERYTHING = re.compile(r"[*?.\[\]!]*[*?][*?.\[\]!]*").fullmatch  # a pattern such as `*`
_SYSTEM = ("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/opt", "/root", "/usr", "/var")
_MAX_SHOWN = 120  # characters of a path in a reason


def shorten(path: str) -> str:
    """Shorten a path or a word for a reason."""
    return path if len(path) <= _MAX_SHOWN else path[: _MAX_SHOWN - 1] + "…"


class PathAccess:
    """The paths that one command uses, in the folder that it runs in.

    The methods add what the command does with a path to the findings, and return a reason to ask,
    if there is one. `several`: the folder is one of several possible ones, because a `cd` before
    the command may fail.
    """

    __slots__ = ("findings", "folder", "machine", "several", "wide_patterns")

    def __init__(
        self, machine: Machine, folder: str, findings: Findings, *, several: bool = False
    ) -> None:
        self.several = several
        self.machine = machine
        self.folder = folder
        self.findings = findings
        self.wide_patterns: set[str] = set()  # that have been checked

    @property
    def within(self) -> str:
        """The folder, or nothing for the root."""
        return "" if self.folder == self.machine.root else self.folder

    def place(self, text: str) -> Place:
        """Return where a path leads."""
        places, key = self.findings.places, (self.folder, text)
        place = places.get(key)
        if place is None:
            place = places[key] = self.machine.place(text, self.folder)
        return place

    def add_read(self, arg: Arg, *, inside: bool = True) -> str:
        """Add that it reads a path. Without `inside` it only looks whether that is there."""
        text = self._text(arg)
        if not text or self._is_stream(text) or text in _SOURCES:
            return ""
        place = self.place(text)
        also = (text,) if text != place.path else ()
        self.findings.add_act(Act(("read",), place.path, "reads", "", also, True, True))
        if not inside and place.reading == "ask" and place.inside:
            return ""
        return self.check_read(place)

    def check_read(self, place: Place) -> str:
        """Note if only a person, or no one, may have that read."""
        if place.reading == "deny":
            self.findings.forbid(f"reads {shorten(place.path)}{_protection(place)}")
        elif place.reading == "ask":
            self.findings.require_person(f"reads {shorten(place.path)}{_protection(place)}")
        if place.inside or place.temporary:
            return ""
        return f"reads {shorten(place.path)}, outside the workspace"

    def add_write(self, arg: Arg, *, minor: bool = True) -> str:
        """Add that it writes a path."""
        text = self._text(arg)
        if not text or (text != "-" and self._is_stream(text)):
            return ""
        place = self.place(text)
        reason = f"writes {shorten(place.path)}"
        also = (text,) if text != place.path else ()
        does: Does = "edits" if place.inside or place.temporary else "changes"
        self.findings.add_act(
            Act(("write",), place.path, does, "" if minor else reason, also, True, minor)
        )
        self._check_write(place, reason)
        return reason

    def add_delete(self, arg: Arg, *, deep: bool) -> str:
        """Add that it deletes a path, and with `deep` everything in it."""
        self._check_pattern(arg, deep)
        text = self._text(arg)
        if not text:
            self._check_empty_variable(arg, deep)
            return "deletes what cannot be known before it runs"
        place = self.place(text)
        reason = f"deletes {shorten(place.path)}" + (" and everything in it" if deep else "")
        also = (text,) if text != place.path else ()
        self.findings.add_act(Act(("write",), place.path, "changes", "", also, True, True))
        self._check_write(place, reason)
        if place.inside:
            self._check_delete(place.path, deep)
        return reason

    def add_program(self, place: Place) -> None:
        """Add that it runs a program, which is a way of reading it."""
        self.findings.add_act(Act(("read",), place.path, "reads", is_path=True, minor=True))
        if place.reading == "deny":
            self.findings.forbid(f"runs {shorten(place.path)}{_protection(place)}")
        elif place.reading == "ask":
            self.findings.require_person(f"runs {shorten(place.path)}{_protection(place)}")

    def add_script(self, arg: Arg) -> str:
        """Add that it runs a script."""
        text = self._text(arg)
        if not text or self._is_stream(text):
            return ""
        place = self.place(text)
        self.add_program(place)
        addition = "" if place.inside else ", outside the workspace"
        return f"runs {shorten(place.path)}{addition}"

    def _check_write(self, place: Place, reason: str) -> None:
        if place.writing == "deny":
            self.findings.forbid(reason + _protection(place))
        elif not place.inside and not place.temporary:
            self.findings.forbid(f"{reason}, outside the workspace")
        elif place.writing == "ask":
            self.findings.require_person(reason + _protection(place))

    def _check_delete(self, path: str, deep: bool) -> None:
        lower = path.lower()  # some file systems ignore case
        if lower == "." and deep:
            self.findings.forbid("deletes the workspace itself")
        elif lower == ".git" or lower.endswith("/.git"):
            self.findings.forbid(f"deletes {shorten(path)}, the history of the repository")
        elif lower.startswith(".git/") or "/.git/" in lower:
            self.findings.require_person(
                f"deletes {shorten(path)}, a part of the repository's history"
            )

    def _check_pattern(self, arg: Arg, deep: bool) -> None:
        """Check a pattern for everything in a folder as if it named the folder."""
        pattern = arg.pattern or ("" if arg.known else arg.text)
        if not pattern or not deep or pattern in self.wide_patterns:
            return
        self.wide_patterns.add(pattern)
        if not arg.known:
            pattern = likely_value(pattern, self.machine.home, self.folder, self.machine.root)
        folder, slash, name = pattern.rpartition("/")
        if not _EVERYTHING(name):
            return
        place = self.place(folder or ("/" if slash else "."))
        if not place.inside and not place.temporary:
            self.findings.forbid(
                f"deletes everything in {shorten(place.path)}, outside the workspace"
            )
        elif place.inside:
            self._check_delete(place.path, deep)

    def _check_empty_variable(self, arg: Arg, deep: bool) -> None:
        """Check what is deleted if a variable is empty: for `rm -rf "$X/"` that is `/`."""
        text = value_if_empty(arg.text, self.machine.home, self.folder, self.machine.root)
        folder = text.rpartition("/")[0] + "/" if _EVERYTHING(text.rpartition("/")[2]) else text
        if not deep or not folder.strip():
            return
        place = self.place(folder)
        is_whole = place.path in (*_SYSTEM, self.machine.home) or (
            place.inside and place.path == "."
        )
        if is_whole:
            self.findings.require_person(f"deletes {shorten(place.path)} if a variable is empty")

    def _text(self, arg: Arg) -> str:
        """Return the path, or nothing if it is not known."""
        if arg.known:
            return arg.text
        return likely_value(arg.text, self.machine.home, self.folder, self.machine.root)

    def _is_stream(self, text: str) -> bool:
        if text.startswith(_SOCKETS):
            self.findings.forbid(f"opens a network connection from the shell: {shorten(text)}")
        return text in STREAMS or _HANDLE(text) is not None


def _protection(place: Place) -> str:
    return f": {place.why}" if place.why else ", which is protected"


_MAX_WORDS = 32  # that are looked at
_MAX_LENGTH = 512  # characters of one
_FLAG_VALUE = re.compile(r"[^=@]*[=@](.+)|-[A-Za-z](.+)", re.DOTALL)


def check_word_paths(entry: Program | None, words: Sequence[Arg], access: PathAccess) -> None:
    """Check words that may be paths, if the program's entry does not say what they are."""
    if entry is not None and not (_takes_any_words(entry) or _has_unknown_subcommand(entry, words)):
        return
    for word in words[:_MAX_WORDS]:
        for text in _paths_in_word(word):
            access.check_read(access.place(text))


def _takes_any_words(entry: Program) -> bool:
    """Whether only the program itself knows the meaning of its words."""
    return entry.does != "reads" and not entry.subcommands and entry.operands.endswith("text*")


def _has_unknown_subcommand(entry: Program, words: Sequence[Arg]) -> bool:
    """Whether the subcommand is not in the table, such as `openssl rsa`."""
    name = next((word.text for word in words if not word.text.startswith("-")), "")
    return entry.does != "reads" and bool(entry.subcommands) and name not in entry.subcommands


def _paths_in_word(word: Arg) -> Iterator[str]:
    """Yield the paths that a word may contain: `x`, `--in=x`, `-ix`, `@x`."""
    if not word.known or not 1 < len(word.text) <= _MAX_LENGTH:
        return
    if not word.text.startswith("-") and "=" not in word.text:
        yield word.text
    if match := _FLAG_VALUE.fullmatch(word.text):
        yield match[1] or match[2]


# Programs that read everything in a folder. Each folder is searched once per command line.

_MAX_FOLDERS = 16  # of one line
_SOURCE_FILES = re.compile(
    r"\*\.(?:py|pyi|js|jsx|ts|tsx|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|md|rst|css|html)"
).fullmatch


def search_folder(
    folder: Arg, patterns: tuple[str, ...], access: PathAccess, *, links: bool = False
) -> list[str]:
    """Check the sensitive files of a folder whose names match, because all of those are read.

    Return the first reason to ask, if there is one. With `links`, links are followed.
    """
    if patterns and not links and all(map(_SOURCE_FILES, patterns)):
        return []  # no one keeps a key in source code, and to search takes longer than all the rest
    files = _sensitive_files(folder, access)
    if files is None:
        return [f"{shorten(folder.text)} has too many files to look for credentials in them"]
    reasons = []
    leads_out = links or (bool(files) and not access.place(folder.text).inside)
    for path in files:
        if may_match(path.rpartition("/")[2], patterns):
            place = access.place(f"{folder.text}/{path}")
            if place.inside or leads_out:
                reasons.append(access.check_read(place))
    return list(filter(None, reasons))[:1]


def _sensitive_files(folder: Arg, access: PathAccess) -> tuple[str, ...] | None:
    searched = access.findings.searched_folders
    key = access.folder, folder.text
    if key not in searched:
        if len(searched) >= _MAX_FOLDERS or None in searched.values():
            return None
        searched[key] = access.machine.sensitive_files(folder.text, access.folder)
    return searched[key]


def note_search(name: str, args: Sequence[Arg], access: PathAccess) -> None:
    """Add a command that reads every file of a folder, because rules may be about some of them."""
    program = name.rpartition("/")[2]
    words = [arg.text for arg in args]
    if program in _COMPARE_PROGRAMS or program in _GREPS:
        if not any(map(_is_recursive, words)):
            return
    elif program not in _SEARCH_PROGRAMS:
        return
    paths = [word for word in words if word[:1] != "-"]
    if program not in _COMPARE_PROGRAMS and not any(
        word.startswith(_PATTERN_FLAGS) for word in words
    ):
        paths = paths[1:]  # the first is the pattern to search for
    folder = access.folder
    access.findings.searches.append(
        Search(folder, tuple(normpath(join(folder, path)) for path in paths))
    )


_SEARCH_PROGRAMS = frozenset({"rg", "ripgrep", "ag", "ack", "git grep"})
_GREPS = frozenset({"grep", "egrep", "fgrep", "zgrep"})
_COMPARE_PROGRAMS = frozenset({"diff"})
_PATTERN_FLAGS = ("-e", "-f", "--regexp", "--file")
_RECURSIVE = ("--recursive", "--dereference-recursive", "--directories=recurse", "recurse")


def _is_recursive(word: str) -> bool:
    is_short = word[:1] == "-" and word[:2] != "--"
    return word in _RECURSIVE or (is_short and ("r" in word or "R" in word))
