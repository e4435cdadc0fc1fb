"""The hunks of a patch, applied to a text. Pure; the work is bounded by the size of both.

A piece has to stand in the file exactly so, line ends aside. It may stand elsewhere than the patch
says, where there is only one such place.
"""

from collections.abc import Iterator, Sequence

from bridle.errors import ToolError
from bridle.tools.nearby import like, split_lines
from bridle.tools.patch import Hunk
from bridle.workspace.text import one_line

_PLACES = 10  # lines that are listed where a piece stands several times


def apply_hunks(text: str, hunks: Sequence[Hunk]) -> str:
    """The new text. Raise `ToolError` where a hunk does not fit."""
    work = _Work(text)
    for number, hunk in enumerate(hunks, 1):
        work.apply(hunk, f"hunk {number}" if len(hunks) > 1 else "the hunk")
    return work.result()


class _Work:
    """A text, and how far it has been patched."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = split_lines(text)
        self._bare = [line.removesuffix("\r") for line in self._lines]
        self._windows = "\r\n" in text
        self._ends = text.endswith("\n") or not text
        self._made: list[str] = []
        self._done = 0  # lines of the old text that are taken over or gone
        self._drift = 0  # how far from its number the hunk before stood

    def apply(self, hunk: Hunk, which: str) -> None:
        """Put one hunk into its place."""
        old = [line.removesuffix("\r") for sign, line in hunk.lines if sign != "+"]
        at = self._place(old, hunk.start, which)
        if hunk.start:
            self._drift = at - (hunk.start - 1)
        self._made += self._lines[self._done : at]
        for sign, line in hunk.lines:
            if sign == "+":
                self._made.append(self._with_its_end(line))
                continue
            if sign == " ":
                self._made.append(self._lines[at])
            at += 1
        self._done = at
        if at == len(self._lines) and (hunk.old_open or hunk.new_open):
            self._ends = not hunk.new_open

    def result(self) -> str:
        """The new text."""
        lines = self._made + self._lines[self._done :]
        return "\n".join(lines) + ("\n" if self._ends and lines else "")

    def _with_its_end(self, line: str) -> str:
        return f"{line}\r" if self._windows and not line.endswith("\r") else line

    def _place(self, old: list[str], start: int, which: str) -> int:
        if not old:
            if self._lines:
                raise ToolError(
                    f"{which} adds lines without any line of the file around them: "
                    "take one or more that stand there, so that the place is sure."
                )
            return 0
        expected = start - 1 + self._drift
        if start and self._done <= expected and self._stands(old, expected):
            return expected
        found = [at for at in occurrences(self._bare, old) if at >= self._done]
        if len(found) == 1:
            return found[0]
        if found:
            places = ", ".join(str(at + 1) for at in found[:_PLACES])
            raise ToolError(
                f"{which} fits at {len(found)} places (lines {places}) and at none where it says. "
                "Take more lines around the change, or mend its line numbers."
            )
        raise ToolError(self._misfit(old, expected, which))

    def _stands(self, old: list[str], at: int) -> bool:
        return self._bare[at : at + len(old)] == old

    def _misfit(self, old: list[str], expected: int, which: str) -> str:
        """Why it does not fit: the first line that differs, and lines that come near."""
        said = f"{which} does not fit"
        there = set(self._bare)
        wanted = next((line for line in old if line not in there), "")
        if wanted:
            said += f": the file has no line `{one_line(wanted, 160)}`."
        elif 0 <= expected < len(self._bare):
            has = self._bare[expected : expected + len(old)]
            pairs = enumerate(zip(old, has, strict=False))
            at = next((n for n, (one, other) in pairs if one != other), len(has))
            line = one_line(has[at], 160) if at < len(has) else "(its end)"
            said += (
                f": line {expected + at + 1} of the file is `{line}`, "
                f"and the patch says `{one_line(old[at], 160)}`."
            )
        else:
            said += ": its lines stand in the file, but not one after the other."
        near = like(self._text, wanted or next(filter(str.strip, old), ""))
        return f"{said} These lines come near:\n{near}" if near else f"{said} Read it again."


def occurrences(lines: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """Where `wanted` stands in `lines`, every place, in time proportional to both."""
    back = _borders(wanted)
    matched = 0
    for at, line in enumerate(lines):
        while matched and (matched == len(wanted) or line != wanted[matched]):
            matched = back[matched - 1]
        if line == wanted[matched]:
            matched += 1
        if matched == len(wanted):
            yield at - matched + 1


def _borders(wanted: Sequence[str]) -> list[int]:
    """For every beginning, the longest shorter beginning that it also ends in."""
    back = [0] * len(wanted)
    length = 0
    for at in range(1, len(wanted)):
        while length and wanted[at] != wanted[length]:
            length = back[length - 1]
        if wanted[at] == wanted[length]:
            length += 1
        back[at] = length
    return back
