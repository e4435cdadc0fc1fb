"""Helpful answers: what a model may have meant, and what it changed. Pure, but for names of files.

difflib is imported where it is needed: most calls go well, and starting is to be fast.
"""

from collections.abc import Iterable
from heapq import nlargest
from itertools import islice
from time import thread_time

from bridle.errors import ToolError
from bridle.protocols.tool import Files
from bridle.tools.opening import scan
from bridle.workspace.text import one_line, shorten

DIFF_SHOWN = 20_000  # characters
_DIFF_LINES = 20_000  # lines on both sides; beyond that comparing takes too long
_ALIKE = 0.6
_SECONDS = 0.5  # of our own time for comparing lines
_NAMES_COMPARED = 2000
_LINE_SHOWN = 160


def missing(files: Files, path: str) -> ToolError:
    """The error for a file that is not there, with names that are like it."""
    import difflib

    folder, _, name = files.relative(path).rpartition("/")
    try:
        names = sorted(entry.name for entry in islice(scan(files, folder or "."), _NAMES_COMPARED))
    except ToolError:
        return ToolError(f"`{one_line(path, 200)}` does not exist, nor does its folder.")
    close = difflib.get_close_matches(name, names, 3)
    prefix = f"{folder}/" if folder else ""
    found = ", ".join(f"`{prefix}{one_line(match)}`" for match in close)
    hint = f"Did you mean {found}?" if found else "Use glob to find it."
    return ToolError(f"`{one_line(path, 200)}` does not exist. {hint}")


def split_lines(text: str) -> list[str]:
    """The lines as editors count them: a line feed ends one, and nothing else does."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def unified(path: str, old: str, new: str, *, limit: int = DIFF_SHOWN) -> str:
    """The difference as a unified diff, bounded."""
    import difflib

    before, after = split_lines(old), split_lines(new)
    if len(before) + len(after) > _DIFF_LINES:
        return f"(too large to compare: {len(before):,} and {len(after):,} lines)"
    name = one_line(path, 500)
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")
    return shorten("\n".join(lines), limit)


def like(text: str, wanted: str) -> str:
    """Lines of the text that come near to what was looked for, with their numbers."""
    lines = [line[:_LINE_SHOWN].rstrip() for line in split_lines(text)]
    sought = (line.strip()[:_LINE_SHOWN] for line in wanted.splitlines())
    first = next(filter(None, sought), "")
    same = [number for number, line in enumerate(lines, 1) if line.strip() == first and first]
    if not same:
        close = _close(first, dict.fromkeys(line.strip() for line in lines))
        same = [number for number, line in enumerate(lines, 1) if line.strip() in close]
    return "\n".join(f"{number:>6}\t{lines[number - 1]}" for number in same[:5])


def _close(wanted: str, lines: Iterable[str]) -> set[str]:
    """The three that are most like it, as far as there is time to compare."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    until = thread_time() + _SECONDS
    found: list[tuple[float, str]] = []
    for line in lines:
        if thread_time() > until:
            break
        matcher.set_seq1(line)
        # The quick ones first: they are never below the true one.
        ways = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
        if all((ratio := way()) >= _ALIKE for way in ways):
            found.append((ratio, line))
    return {line for _, line in nlargest(3, found)}
