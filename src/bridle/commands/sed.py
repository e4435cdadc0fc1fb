"""Is a sed script one that only prints? A strict reader: what it does not know is not.

sed can run programs (`e`, `s///e`) and write files (`w`, `s///w`), so nothing is guessed here.
"""

import re

_ADDRESS = re.compile(r"[ \t]*(?:(\d+)(?:~\d+)?|\$|(/)|\\(.))")
_SECOND = re.compile(r"[ \t]*,[ \t]*(?:[+~]?\d+|\$|(/)|\\(.))")
_PLAIN = re.compile(r"[pdDgGhHxPnN=zl]")
_QUIT = re.compile(r"[qQ][ \t]*\d*")
_TEXT = re.compile(r"[aic][ \t]*[^\\\s][^\\\n]*(?=\n|\Z)")
_BRANCH = re.compile(r"[btT:][ \t]*[A-Za-z0-9_]*(?=[ \t]*(?:[;\n}]|\Z))")
_FLAGS = re.compile(r"[gpiIm0-9]*")
_END = re.compile(r"[ \t]*(?:[;\n}]|\Z)")
_BRACKET = re.compile(r"\[\^?(?:[^][\\\n]|\\[A-Za-z0-9.])+\]")
_MOST = 4096


def only_prints(script: str) -> bool:
    """Does the script do nothing but print what it reads, changed perhaps?"""
    if len(script) > _MOST:
        return False
    at, depth = _blank(script, 0), 0
    while at < len(script):
        opened, at = _step(script, at)
        depth += opened
        if at < 0 or depth < 0:
            return False
        at = _blank(script, at)
    return depth == 0


def _step(script: str, at: int) -> tuple[int, int]:
    """One command: how many braces it opens, and where it ends (-1: it is not a harmless one)."""
    if script[at] == "#" and at > 0:
        return 0, script.find("\n", at) + 1 or len(script)
    if script[at] == "}":
        return -1, at + 1
    start = _addressed(script, at)
    if start < 0 or start >= len(script):
        return 0, -1
    if script[start] == "{":
        return 1, start + 1
    return 0, _command(script, start)


def _blank(script: str, at: int) -> int:
    while at < len(script) and script[at] in " \t\n;":
        at += 1
    return at


def _addressed(script: str, at: int) -> int:
    """Where the command begins, after its addresses; -1 if they are not understood."""
    at = _one_address(script, at, _ADDRESS)
    if at >= 0:
        at = _one_address(script, at, _SECOND)
    if at < 0:
        return -1
    while at < len(script) and script[at] in " \t!":
        at += 1
    return at


def _one_address(script: str, at: int, shape: re.Pattern[str]) -> int:
    found = shape.match(script, at)
    if found is None:
        return at
    delimiter = found[found.lastindex] if found.lastindex and found.lastindex > 1 else ""
    if shape is _SECOND and found.lastindex:
        delimiter = found[found.lastindex]
    if not delimiter:
        return found.end()
    if delimiter in "[]\\":
        return -1
    end = _delimited(script, found.end(), delimiter)
    while 0 <= end < len(script) and script[end] in "IM":
        end += 1
    return end


def _command(script: str, at: int) -> int:
    """Where the command ends, if it is a harmless one; else -1."""
    letter = script[at]
    if letter in "sy":
        end = _substitution(script, at)
    else:
        shapes = (_PLAIN, _QUIT, _TEXT, _BRANCH)
        found = next((m for m in (shape.match(script, at) for shape in shapes) if m), None)
        end = found.end() if found else -1
    if end < 0 or not _END.match(script, end):
        return -1
    return end


def _substitution(script: str, at: int) -> int:
    delimiter = script[at + 1 : at + 2]
    if not delimiter or delimiter in "\\\n \t;[]" or delimiter.isalnum():
        return -1
    end = _delimited(script, at + 2, delimiter)
    end = _delimited(script, end, delimiter) if end >= 0 else -1
    if end < 0:
        return -1
    flags = _FLAGS.match(script, end) if script[at] == "s" else None
    return flags.end() if flags else end


def _delimited(script: str, at: int, delimiter: str) -> int:
    """Behind the next delimiter; -1 where a bracket makes it uncertain which one that is."""
    while at < len(script):
        letter = script[at]
        if letter == delimiter:
            return at + 1
        if letter == "\n":
            return -1
        if letter == "\\":
            at += 2
        elif letter == "[":
            found = _BRACKET.match(script, at)
            if found is None or delimiter in found.group():
                return -1
            at = found.end()
        else:
            at += 1
    return -1
