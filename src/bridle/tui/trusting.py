"""What a folder would set, to be read before it counts: every byte of it, made harmless. Pure."""

from collections.abc import Iterable

from bridle.config.trust import FolderFile
from bridle.workspace.text import one_line, quantity


def trust_lines(files: Iterable[FolderFile]) -> list[tuple[str, str]]:
    """The files that are not trusted yet in full, then the names of those that are."""
    found = tuple(files)
    lines: list[tuple[str, str]] = []
    for one in found:
        if one.trusted:
            continue
        lines += [("", "")] if lines else []
        size = quantity(len(one.data), "byte")
        name = one_line(one.name, 200)
        lines.append((f"{name}  {size}" if not one.problem else name, "head"))
        if one.problem:
            lines.append(
                (f"cannot be read and does not count: {one_line(one.problem, 300)}", "warning")
            )
        else:
            text = one.data.decode("utf-8", "backslashreplace")
            lines += [(f"│ {line}", "") for line in text.removesuffix("\n").split("\n")]
    known = [one_line(one.name, 200) for one in found if one.trusted]
    if known:
        lines += [("", ""), (f"Trusted already, and unchanged: {', '.join(known)}", "muted")]
    return lines
