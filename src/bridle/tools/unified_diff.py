"""Unified diffs: parse a patch, apply its hunks to a text, and make a diff of two texts. Pure.

A patch may have git's own headers: new, deleted and renamed files, modes, quoted names. The gate
and the tool both use this parser, so they see the same paths. What cannot be parsed is refused with
its line number, never skipped.

The old lines of a hunk have to be in the file exactly as the patch has them, except for line ends.
They may be elsewhere than the patch says, if there is only one such place.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bridle.errors import ToolError
from bridle.tools.encoding import split_lines
from bridle.tools.workspace_files import similar_lines
from bridle.workspace.text import one_line, shorten

MAX_DIFF = 20_000  # characters of a diff that we make
_MAX_DIFF_LINES = 20_000  # of both texts together; to compare more takes too long
_MAX_FILES = 200  # of one patch
_MAX_PLACES = 10  # lines that are listed if a hunk fits in several places
_NO_FILE = "/dev/null"

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_MODE = re.compile(r"(old mode|new mode|new file mode|deleted file mode) (\d{6})")
_RENAME = re.compile(r"rename (from|to) (.+)")
_IGNORED_HEADER = re.compile(r"index [0-9a-f]+\.\.[0-9a-f]+|(?:dis)?similarity index \d+%")
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_MODES = {"100644": 0o644, "100755": 0o755}


class Hunk(NamedTuple):
    """Lines of the old file and the lines that replace them.

    `lines` are pairs of a sign (blank, `-` or `+`) and a line. `start` is the number of the first
    line in the old file, 0 if the patch does not say. `old_open` and `new_open`: the last line of
    that side has no line end.
    """

    start: int
    lines: tuple[tuple[str, str], ...]
    old_open: bool = False
    new_open: bool = False


class FilePatch(NamedTuple):
    """The changes of one file. `old` is empty for a new file, `new` for a deleted one."""

    old: str
    new: str
    hunks: tuple[Hunk, ...] = ()
    mode: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the file before and after."""
        return tuple(dict.fromkeys(filter(None, (self.old, self.new))))


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """Return the files of a patch, in order. Raise `ToolError` if it cannot be parsed."""
    files = _Parser(text).files()
    if not files:
        raise ToolError(
            "There is no file in the patch. It has to be a unified diff: `--- a/path`, "
            "`+++ b/path`, then hunks that begin with `@@ -line,count +line,count @@`."
        )
    return tuple(files)


def apply_hunks(text: str, hunks: Sequence[Hunk]) -> str:
    """Return the text with the hunks applied. Raise `ToolError` if one does not fit."""
    patched = _PatchedText(text)
    for number, hunk in enumerate(hunks, 1):
        patched.apply(hunk, f"hunk {number}" if len(hunks) > 1 else "the hunk")
    return patched.result()


def unified_diff(path: str, old: str, new: str, *, limit: int = MAX_DIFF) -> str:
    """Return the difference of two texts as a unified diff of at most `limit` characters."""
    before, after = split_lines(old), split_lines(new)
    if len(before) + len(after) > _MAX_DIFF_LINES:
        return f"(too large to compare: {len(before):,} and {len(after):,} lines)"
    name = one_line(path, 500)
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")
    return shorten("\n".join(lines), limit)


class _Parser:
    """Goes through the lines of a patch once."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._position = 0

    def files(self) -> list[FilePatch]:
        files: list[FilePatch] = []
        while self._position < len(self._lines):
            if not self._line().strip():
                self._position += 1
            elif self._line().startswith("diff --git "):
                files.append(self._git_file())
            elif self._is_header():
                old, new = self._names()
                files.append(FilePatch(old, new, self._hunks()))
            else:
                raise self._error("cannot be understood")
            if len(files) > _MAX_FILES:
                raise ToolError(f"The patch has more than {_MAX_FILES} files; make smaller ones.")
        return files

    def _line(self, ahead: int = 0) -> str:
        """Return a line without the CR of a patch in CRLF; empty after the last line."""
        position = self._position + ahead
        return self._lines[position].removesuffix("\r") if position < len(self._lines) else ""

    def _error(self, problem: str) -> ToolError:
        return ToolError(
            f"Line {self._position + 1} of the patch {problem}: `{one_line(self._line(), 120)}`. "
            "Nothing was changed."
        )

    def _is_header(self, ahead: int = 0) -> bool:
        return self._line(ahead).startswith("--- ") and self._line(ahead + 1).startswith("+++ ")

    # --- git's headers ---

    def _git_file(self) -> FilePatch:
        names, start = self._line().removeprefix("diff --git "), self._position
        self._position += 1
        headers = self._git_headers()
        old, new = headers.get("rename from", ""), headers.get("rename to", "")
        if self._is_header():
            pair = self._names(renamed=bool(old))
            if old and pair != (old, new):
                raise self._error("comes after names that differ from `rename from` and `to`")
            old, new = pair
        elif not old:
            self._position, after = start, self._position
            old, new = self._same_name(names)
            self._position = after
        if "new file mode" in headers:
            old = ""
        if "deleted file mode" in headers:
            new = ""
        mode = headers.get("new mode") or headers.get("new file mode")
        return FilePatch(old, new, self._hunks(), _MODES[mode] if mode else None)

    def _git_headers(self) -> dict[str, str]:
        """Return the lines between `diff --git` and the names."""
        headers: dict[str, str] = {}
        while True:
            line = self._line()
            if mode := _MODE.fullmatch(line):
                if mode[2] not in _MODES:
                    raise self._error("is about a link or a submodule, which a patch cannot change")
                headers[mode[1]] = mode[2]
            elif rename := _RENAME.fullmatch(line):
                headers[f"rename {rename[1]}"] = self._without_quotes(rename[2])
            elif line.startswith(("copy ", "GIT binary patch", "Binary files ")):
                raise self._error("is of a kind that is not supported")
            elif not _IGNORED_HEADER.match(line):
                break
            self._position += 1
        if ("rename from" in headers) != ("rename to" in headers):
            raise self._error("comes after half of a rename")
        return headers

    def _same_name(self, names: str) -> tuple[str, str]:
        """Parse `a/x b/x`, the names of a file that is empty or whose content stays."""
        half = len(names) // 2
        old, new = names[:half], names[half + 1 :]
        if names[half : half + 1] != " ":
            raise self._error("has no clear names")
        old, new = _without_prefixes(self._without_quotes(old), self._without_quotes(new))
        if old != new:
            raise self._error("has two names and no `rename`")
        return old, new

    # --- names ---

    def _names(self, renamed: bool = False) -> tuple[str, str]:
        raw = [self._line(ahead)[4:].split("\t")[0] for ahead in (0, 1)]
        old, new = ("" if name == _NO_FILE else self._without_quotes(name) for name in raw)
        old, new = _without_prefixes(old, new)
        if not old and not new:
            raise self._error("names no file")
        if old and new and old != new and not renamed:
            raise self._error(f"has another name than the next (`{one_line(new)}`) and no `rename`")
        self._position += 2
        return old, new

    def _without_quotes(self, name: str) -> str:
        """Return a name that git may have quoted."""
        if not name.startswith('"'):
            return name
        if len(name) < 2 or not name.endswith('"'):
            raise self._error("has a quoted name that does not end")
        return _unescape(name[1:-1])

    # --- hunks ---

    def _hunks(self) -> tuple[Hunk, ...]:
        hunks: list[Hunk] = []
        while self._line().startswith("@@"):
            hunks.append(self._hunk())
        return tuple(hunks)

    def _hunk(self) -> Hunk:
        header = _HUNK.match(self._line())
        self._position += 1
        start = self._position
        body: _HunkLines | None = None
        if header is not None:
            body = self._body([1 if n is None else int(n) for n in (header[2], header[4])])
        if body is None:  # models miscount: then it ends where the next hunk or file begins
            self._position = start
            body = self._body(None)
        if body is None or not body.lines:
            raise self._error("should belong to a hunk, but does not")
        first = int(header[1]) if header is not None else 0
        return Hunk(first, tuple(body.lines), body.old_open, body.new_open)

    def _body(self, counts: list[int] | None) -> "_HunkLines | None":
        """Return the lines of a hunk, by count or up to the next header. None: wrong counts."""
        body = _HunkLines(counts)
        while self._position < len(self._lines) and not body.is_full and not self._is_end():
            if counts is None and (self._line().startswith("@@") or self._is_header()):
                break
            if not body.add(self._lines[self._position]):
                break
            self._position += 1
        if self._position < len(self._lines) and self._line().startswith("\\"):
            body.add(self._line())
            self._position += 1
        if counts is None:
            # Blank lines after an uncounted hunk separate it from the next.
            while body.lines and body.lines[-1] in ((" ", ""), (" ", "\r")):
                body.lines.pop()
            return body
        return body if body.is_full and self._is_boundary() else None

    def _is_end(self) -> bool:
        """Return whether this is the empty string after the last line end."""
        return self._position == len(self._lines) - 1 and not self._line()

    def _is_boundary(self) -> bool:
        line = self._line()
        return not line.strip() or line.startswith(("@@", "diff --git ")) or self._is_header()


class _HunkLines:
    """The lines of one hunk. `counts` are those of old and new lines, if they are to be trusted."""

    def __init__(self, counts: list[int] | None) -> None:
        self._counts = counts
        self.lines: list[tuple[str, str]] = []
        self.old_open = False
        self.new_open = False

    @property
    def is_full(self) -> bool:
        return self._counts == [0, 0]

    def add(self, line: str) -> bool:
        """Add a line. Return False if it does not belong to the hunk."""
        sign, rest = line[:1], line[1:]
        if sign == "\\":
            last = self.lines[-1][0] if self.lines else ""
            self.old_open = self.old_open or last in (" ", "-")
            self.new_open = self.new_open or last in (" ", "+")
            return True
        if line in ("", "\r"):  # an empty line that has lost its leading blank
            sign, rest = " ", line
        if sign not in (" ", "-", "+"):
            return False
        if self._counts is not None:
            old, new = int(sign != "+"), int(sign != "-")
            if self._counts[0] < old or self._counts[1] < new:
                return False
            self._counts = [self._counts[0] - old, self._counts[1] - new]
        self.lines.append((sign, rest))
        return True


def _without_prefixes(old: str, new: str) -> tuple[str, str]:
    """Remove `a/` and `b/` if both names have them."""
    if (not old or old.startswith("a/")) and (not new or new.startswith("b/")):
        return old[2:], new[2:]
    return old, new


def _unescape(text: str) -> str:
    """Decode git's escapes in a quoted name."""
    pieces: list[bytes] = []
    position = 0
    for match in _ESCAPE.finditer(text):
        code = match[1]
        byte = _ESCAPES[code] if code in _ESCAPES else int(code, 8) & 0xFF
        pieces += [text[position : match.start()].encode("utf-8", "surrogateescape"), bytes([byte])]
        position = match.end()
    pieces.append(text[position:].encode("utf-8", "surrogateescape"))
    return b"".join(pieces).decode("utf-8", "surrogateescape")


class _PatchedText:
    """A text to which hunks are applied from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = split_lines(text)
        self._without_cr = [line.removesuffix("\r") for line in self._lines]
        self._has_crlf = "\r\n" in text
        self._ends_with_newline = text.endswith("\n") or not text
        self._new_lines: list[str] = []
        self._done = 0  # old lines that have been copied or removed
        self._offset = 0  # how far from its line number the previous hunk was

    def apply(self, hunk: Hunk, name: str) -> None:
        """Apply one hunk. Raise `ToolError` if it does not fit."""
        old = [line.removesuffix("\r") for sign, line in hunk.lines if sign != "+"]
        position = self._find(old, hunk.start, name)
        if hunk.start:
            self._offset = position - (hunk.start - 1)
        self._new_lines += self._lines[self._done : position]
        for sign, line in hunk.lines:
            if sign == "+":
                crlf = self._has_crlf and not line.endswith("\r")
                self._new_lines.append(f"{line}\r" if crlf else line)
                continue
            if sign == " ":
                self._new_lines.append(self._lines[position])
            position += 1
        self._done = position
        if position == len(self._lines) and (hunk.old_open or hunk.new_open):
            self._ends_with_newline = not hunk.new_open

    def result(self) -> str:
        """Return the new text."""
        lines = self._new_lines + self._lines[self._done :]
        return "\n".join(lines) + ("\n" if self._ends_with_newline and lines else "")

    def _find(self, old: list[str], start: int, name: str) -> int:
        """Return where the old lines of a hunk are. Raise `ToolError` if that is not clear."""
        if not old:
            if self._lines:
                raise ToolError(
                    f"{name} adds lines without any line of the file around them: "
                    "add one or more, so that the place is certain."
                )
            return 0
        expected = start - 1 + self._offset
        is_possible = start and self._done <= expected
        if is_possible and self._without_cr[expected : expected + len(old)] == old:
            return expected
        places = [place for place in occurrences(self._without_cr, old) if place >= self._done]
        if len(places) == 1:
            return places[0]
        if places:
            numbers = ", ".join(str(place + 1) for place in places[:_MAX_PLACES])
            raise ToolError(
                f"{name} fits at {len(places)} places (lines {numbers}), but not at its line "
                "number. Add more lines around the change, or correct its line numbers."
            )
        raise ToolError(self._misfit(old, expected, name))

    def _misfit(self, old: list[str], expected: int, name: str) -> str:
        """Say why a hunk does not fit: the first line that differs, and similar lines."""
        message = f"{name} does not fit"
        existing = set(self._without_cr)
        missing = next((line for line in old if line not in existing), "")
        if missing:
            message += f": the file has no line `{one_line(missing, 160)}`."
        elif 0 <= expected < len(self._without_cr):
            actual = self._without_cr[expected : expected + len(old)]
            pairs = enumerate(zip(old, actual, strict=False))
            index = next((n for n, (line, other) in pairs if line != other), len(actual))
            line = one_line(actual[index], 160) if index < len(actual) else "(its end)"
            message += (
                f": line {expected + index + 1} of the file is `{line}`, "
                f"but in the patch it is `{one_line(old[index], 160)}`."
            )
        else:
            message += ": the file has its lines, but not one after the other."
        similar = similar_lines(self._text, missing or next(filter(str.strip, old), ""))
        return f"{message} Similar lines:\n{similar}" if similar else f"{message} Read it again."


def occurrences(lines: Sequence[str], pattern: Sequence[str]) -> Iterator[int]:
    """Yield every place where `pattern` is in `lines`, in linear time (Knuth, Morris and Pratt)."""
    borders = _borders(pattern)
    matched = 0
    for index, line in enumerate(lines):
        while matched and (matched == len(pattern) or line != pattern[matched]):
            matched = borders[matched - 1]
        if line == pattern[matched]:
            matched += 1
        if matched == len(pattern):
            yield index - matched + 1


def _borders(pattern: Sequence[str]) -> list[int]:
    """Return for each prefix the length of the longest shorter prefix that it ends with."""
    borders = [0] * len(pattern)
    length = 0
    for index in range(1, len(pattern)):
        while length and pattern[index] != pattern[length]:
            length = borders[length - 1]
        if pattern[index] == pattern[length]:
            length += 1
        borders[index] = length
    return borders
