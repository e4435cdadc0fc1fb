"""What the model may have meant: files with a similar name, and similar lines of a file."""

import difflib
from collections.abc import Iterable
from heapq import nlargest
from itertools import islice
from time import thread_time

from bridle.errors import ToolError
from bridle.protocols.tool import Files
from bridle.tools.encoding import split_lines
from bridle.tools.workspace_files import iter_entries
from bridle.workspace.text import one_line

_MAX_NAMES = 2000  # compared
_MAX_LINE = 160  # characters of a line that are compared and shown
_SIMILAR = 0.6  # ratio
_SECONDS = 0.5  # of this thread's CPU time, to compare lines


def missing_file_error(files: Files, path: str) -> ToolError:
    """Return the error for a file that does not exist. It suggests files with a similar name."""
    folder, _, name = files.relative(path).rpartition("/")
    try:
        entries = islice(iter_entries(files, folder or "."), _MAX_NAMES)
        names = sorted(entry.name for entry in entries)
    except ToolError:
        return ToolError(f"`{one_line(path, 200)}` does not exist, nor does its folder.")
    prefix = f"{folder}/" if folder else ""
    matches = difflib.get_close_matches(name, names, 3)
    similar = ", ".join(f"`{prefix}{one_line(match)}`" for match in matches)
    hint = f"Did you mean {similar}?" if similar else "Use glob to find it."
    return ToolError(f"`{one_line(path, 200)}` does not exist. {hint}")


def similar_lines(text: str, wanted: str) -> str:
    """Return lines that resemble the first line of `wanted`, with their numbers."""
    lines = [line[:_MAX_LINE].rstrip() for line in split_lines(text)]
    stripped = (line.strip()[:_MAX_LINE] for line in wanted.splitlines())
    first = next(filter(None, stripped), "")
    numbers = [number for number, line in enumerate(lines, 1) if line.strip() == first and first]
    if not numbers:
        similar = _most_similar(first, dict.fromkeys(line.strip() for line in lines))
        numbers = [number for number, line in enumerate(lines, 1) if line.strip() in similar]
    return "\n".join(f"{number:>6}\t{lines[number - 1]}" for number in numbers[:5])


def _most_similar(wanted: str, lines: Iterable[str]) -> set[str]:
    """Return the three most similar lines, among those that there is time to compare."""
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    until = thread_time() + _SECONDS
    similar: list[tuple[float, str]] = []
    for line in lines:
        if thread_time() > until:
            break
        matcher.set_seq1(line)
        # The quick ones first: they are never below the exact one.
        ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
        if all((ratio := compute()) >= _SIMILAR for compute in ratios):
            similar.append((ratio, line))
    return {line for _, line in nlargest(3, similar)}
