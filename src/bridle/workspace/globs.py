"""Patterns for paths, as .gitignore and shells write them: `*`, `?`, `[…]`, `**`, `{a,b}`. Pure.

A pattern without a `/` matches a name in any folder; one with a `/` matches from the top. The work
for one path is bounded by the product of the lengths, whatever the pattern is.
"""

import re
from collections.abc import Callable
from fnmatch import translate

Matcher = Callable[[str], bool]

MOST_ALTERNATIVES = 64
LONGEST = 4096  # characters, as the kernel has it for a path


def compile_glob(pattern: str, *, braces: bool = True) -> Matcher:
    """A function that says whether a relative path fits. Raise `ValueError` for a bad pattern.

    Without `braces` they stand for themselves, as in .gitignore.
    """
    if len(pattern) > LONGEST:
        raise ValueError(f"the pattern has more than {LONGEST} characters")
    alternatives = expand_braces(pattern) if braces else [pattern]
    matchers = [_compile(alternative) for alternative in alternatives]
    if len(matchers) == 1:
        return matchers[0]
    return lambda path: any(fits(path) for fits in matchers)


def expand_braces(pattern: str) -> list[str]:
    """`a.{py,md}` as `a.py` and `a.md`; braces that do not close stand for themselves."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        current = waiting.pop()
        found = re.search(r"\{([^{}]*,[^{}]*)\}", current)
        if found is None:
            done.append(current)
        else:
            before, after = current[: found.start()], current[found.end() :]
            waiting += [before + choice + after for choice in reversed(found[1].split(","))]
        if len(done) + len(waiting) > MOST_ALTERNATIVES:
            raise ValueError(f"the pattern has more than {MOST_ALTERNATIVES} alternatives")
    return done


def _compile(pattern: str) -> Matcher:
    parts = [part for part in pattern.strip("/").split("/") if part not in ("", ".")]
    if "/" not in pattern and len(parts) == 1 and parts[0] != "**":
        fits = _segment(parts[0])
        return lambda path: fits(path.rpartition("/")[2])
    if parts and parts[-1] == "**":  # `a/**` is what lies below a, not a itself
        parts.append("*")
    segments = [None if part == "**" else _segment(part) for part in parts]
    return lambda path: _fit(segments, path.split("/"))


def _segment(part: str) -> Matcher:
    """One component. `\\x` stands for x itself; fnmatch's own expressions do not blow up."""
    plain = re.sub(r"\\(.)", lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], part)
    match = re.compile(translate(plain)).match
    return lambda name: match(name) is not None


def _fit(segments: list[Matcher | None], names: list[str]) -> bool:
    """All segments against all names; None stands for any number of names."""
    reached = {0}
    for segment in segments:
        if segment is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and segment(names[at])}
        if not reached:
            return False
    return len(names) in reached
