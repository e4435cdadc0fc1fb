"""What a folder would set, to be read before it counts: every byte of it, made harmless. Pure."""

from collections.abc import Iterable

from bridle.config.trust import Counting
from bridle.tui.blocks_words import counted


def trust_lines(files: Iterable[Counting]) -> list[tuple[str, str]]:
    """The files that are not trusted yet in full, then the names of those that are."""
    found = tuple(files)
    lines: list[tuple[str, str]] = []
    for one in found:
        if one.trusted:
            continue
        lines += [("", "")] if lines else []
        size = counted(len(one.data), "byte")
        lines.append((f"{one.name}  {size}" if not one.problem else one.name, "head"))
        if one.problem:
            lines.append((f"cannot be read and does not count: {one.problem}", "warning"))
        else:
            text = one.data.decode("utf-8", "backslashreplace")
            lines += [(f"│ {line}", "") for line in text.removesuffix("\n").split("\n")]
    known = [one.name for one in found if one.trusted]
    if known:
        lines += [("", ""), (f"Trusted already, and unchanged: {', '.join(known)}", "muted")]
    return lines
