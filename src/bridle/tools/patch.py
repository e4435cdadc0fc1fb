"""A unified diff, read: which files, and what shall become of them. Pure.

git's own headers are understood (new, deleted and renamed files, modes, quoted names). Whoever
judges a patch and whoever applies it read it here, so both see the same paths. What cannot be
understood is refused with its line, never skipped.
"""

import re
from typing import NamedTuple

from bridle.errors import ToolError
from bridle.workspace.text import one_line

MOST_FILES = 200
NOWHERE = "/dev/null"

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_MODE = re.compile(r"(old mode|new mode|new file mode|deleted file mode) (\d{6})")
_RENAME = re.compile(r"rename (from|to) (.+)")
_SILENT = re.compile(r"index [0-9a-f]+\.\.[0-9a-f]+|(?:dis)?similarity index \d+%")
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_LETTERS = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_MODES = {"100644": 0o644, "100755": 0o755}


class Hunk(NamedTuple):
    """A piece of the old file and what stands there in the new one.

    `lines` are pairs of a sign (blank, `-`, `+`) and the line. `start` is where the piece stood (0:
    it was not said). `old_open` and `new_open`: the last line of that side has no line end.
    """

    start: int
    lines: tuple[tuple[str, str], ...]
    old_open: bool = False
    new_open: bool = False


class FilePatch(NamedTuple):
    """What shall become of a file. No `old`: it is new. No `new`: it is deleted."""

    old: str
    new: str
    hunks: tuple[Hunk, ...] = ()
    mode: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that it touches."""
        return tuple(dict.fromkeys(filter(None, (self.old, self.new))))


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """All files of a patch, in order. Raise `ToolError` for what cannot be understood."""
    found = _Parser(text).files()
    if not found:
        raise ToolError(
            "There is no file in the patch. It has to be a unified diff: `--- a/path`, "
            "`+++ b/path`, then hunks that begin with `@@ -line,count +line,count @@`."
        )
    return tuple(found)


class _Parser:
    """Goes through the lines once."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._at = 0

    def _line(self, ahead: int = 0) -> str:
        """A line, without the line end that a patch may have of its own; empty beyond the end."""
        at = self._at + ahead
        return self._lines[at].removesuffix("\r") if at < len(self._lines) else ""

    def _wrong(self, why: str) -> ToolError:
        return ToolError(
            f"Line {self._at + 1} of the patch {why}: `{one_line(self._line(), 120)}`. "
            "Nothing was changed."
        )

    def files(self) -> list[FilePatch]:
        found: list[FilePatch] = []
        while self._at < len(self._lines):
            if not self._line().strip():
                self._at += 1
            elif self._line().startswith("diff --git "):
                found.append(self._git_file())
            elif self._is_header():
                old, new = self._names()
                found.append(FilePatch(old, new, self._hunks()))
            else:
                raise self._wrong("cannot be understood")
            if len(found) > MOST_FILES:
                raise ToolError(f"The patch has more than {MOST_FILES} files; make smaller ones.")
        return found

    def _is_header(self, ahead: int = 0) -> bool:
        return self._line(ahead).startswith("--- ") and self._line(ahead + 1).startswith("+++ ")

    # --- git's headers ---

    def _git_file(self) -> FilePatch:
        first, begun = self._line().removeprefix("diff --git "), self._at
        self._at += 1
        said = self._git_lines()
        old, new = said.get("rename from", ""), said.get("rename to", "")
        if self._is_header():
            names = self._names(renamed=bool(old))
            if old and names != (old, new):
                raise self._wrong("comes after names that differ from `rename from` and `to`")
            old, new = names
        elif not old:
            self._at, after = begun, self._at
            old, new = self._same_name(first)
            self._at = after
        if "new file mode" in said:
            old = ""
        if "deleted file mode" in said:
            new = ""
        mode = said.get("new mode") or said.get("new file mode")
        return FilePatch(old, new, self._hunks(), _MODES[mode] if mode else None)

    def _git_lines(self) -> dict[str, str]:
        """The lines between `diff --git` and the names."""
        said: dict[str, str] = {}
        while True:
            line = self._line()
            if mode := _MODE.fullmatch(line):
                if mode[2] not in _MODES:
                    raise self._wrong("is about a link or a submodule, which a patch cannot change")
                said[mode[1]] = mode[2]
            elif rename := _RENAME.fullmatch(line):
                said[f"rename {rename[1]}"] = self._plain(rename[2])
            elif line.startswith(("copy ", "GIT binary patch", "Binary files ")):
                raise self._wrong("is of a kind that is not understood")
            elif not _SILENT.match(line):
                break
            self._at += 1
        if ("rename from" in said) != ("rename to" in said):
            raise self._wrong("comes after half of a rename")
        return said

    def _same_name(self, first: str) -> tuple[str, str]:
        """`a/x b/x`, of a file whose content stays, or that is empty."""
        half = len(first) // 2
        old, new = first[:half], first[half + 1 :]
        if first[half : half + 1] != " ":
            raise self._wrong("does not say its names clearly")
        old, new = _stripped(self._plain(old), self._plain(new))
        if old != new:
            raise self._wrong("has two names and no `rename`")
        return old, new

    # --- names ---

    def _names(self, renamed: bool = False) -> tuple[str, str]:
        raw = [self._line(ahead)[4:].split("\t")[0] for ahead in (0, 1)]
        old, new = ("" if name == NOWHERE else self._plain(name) for name in raw)
        old, new = _stripped(old, new)
        if not old and not new:
            raise self._wrong("names no file")
        if old and new and old != new and not renamed:
            raise self._wrong(f"has another name than the next (`{one_line(new)}`) and no `rename`")
        self._at += 2
        return old, new

    def _plain(self, name: str) -> str:
        """A name with git's quotes taken off."""
        if not name.startswith('"'):
            return name
        if len(name) < 2 or not name.endswith('"'):
            raise self._wrong("has a quoted name that does not end")
        return _unquoted(name[1:-1])

    # --- hunks ---

    def _hunks(self) -> tuple[Hunk, ...]:
        found: list[Hunk] = []
        while self._line().startswith("@@"):
            found.append(self._hunk())
        return tuple(found)

    def _hunk(self) -> Hunk:
        head = _HUNK.match(self._line())
        self._at += 1
        begun = self._at
        body: _Body | None = None
        if head is not None:
            body = self._body([1 if n is None else int(n) for n in (head[2], head[4])])
        if body is None:  # models miscount: the piece then ends where another begins
            self._at = begun
            body = self._body(None)
        if body is None or not body.lines:
            raise self._wrong("should belong to a hunk, and does not")
        start = int(head[1]) if head is not None else 0
        return Hunk(start, tuple(body.lines), body.old_open, body.new_open)

    def _body(self, counts: list[int] | None) -> "_Body | None":
        """The lines of a hunk, by their counts or to the next header. None: they do not fit."""
        body = _Body(counts)
        while self._at < len(self._lines) and not body.is_full and not self._is_end():
            if counts is None and (self._line().startswith("@@") or self._is_header()):
                break
            if not body.take(self._lines[self._at]):
                break
            self._at += 1
        if self._at < len(self._lines) and self._line().startswith("\\"):
            body.take(self._line())
            self._at += 1
        if counts is None:
            body.drop_blank_end()
            return body
        return body if body.is_full and self._is_boundary() else None

    def _is_end(self) -> bool:
        """Is this what stands after the last line end: nothing?"""
        return self._at == len(self._lines) - 1 and not self._line()

    def _is_boundary(self) -> bool:
        line = self._line()
        return not line.strip() or line.startswith(("@@", "diff --git ")) or self._is_header()


class _Body:
    """The lines of one hunk, as they come."""

    def __init__(self, counts: list[int] | None) -> None:
        self._left = counts
        self.lines: list[tuple[str, str]] = []
        self.old_open = False
        self.new_open = False

    @property
    def is_full(self) -> bool:
        return self._left == [0, 0]

    def take(self, line: str) -> bool:
        """One more line. False: it does not belong here."""
        sign, rest = line[:1], line[1:]
        if sign == "\\":
            last = self.lines[-1][0] if self.lines else ""
            self.old_open = self.old_open or last in (" ", "-")
            self.new_open = self.new_open or last in (" ", "+")
            return True
        if line in ("", "\r"):  # an empty line whose blank was lost on the way
            sign, rest = " ", line
        if sign not in (" ", "-", "+"):
            return False
        if self._left is not None and not self._fits(sign):
            return False
        self.lines.append((sign, rest))
        return True

    def _fits(self, sign: str) -> bool:
        assert self._left is not None
        old, new = int(sign != "+"), int(sign != "-")
        if self._left[0] < old or self._left[1] < new:
            return False
        self._left = [self._left[0] - old, self._left[1] - new]
        return True

    def drop_blank_end(self) -> None:
        """Blank lines after an uncounted hunk are the space between two, not a part of it."""
        while self.lines and self.lines[-1] in ((" ", ""), (" ", "\r")):
            self.lines.pop()


def _stripped(old: str, new: str) -> tuple[str, str]:
    """Without the `a/` and `b/` before them, where both sides have them."""
    if (not old or old.startswith("a/")) and (not new or new.startswith("b/")):
        return old[2:], new[2:]
    return old, new


def _unquoted(text: str) -> str:
    def byte(found: re.Match[str]) -> bytes:
        code = found[1]
        return bytes([_LETTERS[code] if code in _LETTERS else int(code, 8) & 0xFF])

    pieces: list[bytes] = []
    at = 0
    for found in _ESCAPE.finditer(text):
        pieces += [text[at : found.start()].encode("utf-8", "surrogateescape"), byte(found)]
        at = found.end()
    pieces.append(text[at:].encode("utf-8", "surrogateescape"))
    return b"".join(pieces).decode("utf-8", "surrogateescape")
