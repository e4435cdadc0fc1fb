"""Words with an expansion in them: what they most likely stand for, so that the worst is seen.

Never used to allow anything: such a word is opaque whatever this says.
"""

import re

_HOME = re.compile(r"\$(?:HOME\b|\{HOME\b[^}]*\})")
_HERE = re.compile(r"\$(?:PWD\b|\{PWD\b[^}]*\}|\(\s*pwd\s*\))|`\s*pwd\s*`")
_TOP = re.compile(r"\$\(\s*git rev-parse --show-toplevel\s*\)")
_OTHER = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|`[^`]*`|\$\w+|\$[@*#?!$-]")
_THEIRS = re.compile(r"\A~([A-Za-z_][\w-]*)(?=/|\Z)")
_HOMES = {"root": "/"}
_BRACES = re.compile(r"(.*?)(?<!\$)\{([^{}]*,[^{}]*)\}(.*)", re.DOTALL)
_LONGEST = 1000  # characters of a word that are looked into
_MOST = 16  # words that braces are spread into
_QUOTES = str.maketrans("", "", "\"'\\")


def likely(spelling: str, home: str, folder: str, root: str) -> str:
    """What the word stands for, if it has nothing in it but `$HOME`, `$PWD` and their like."""
    if len(spelling) > _LONGEST:
        return ""
    text = _filled(spelling, home, folder, root)
    return "" if "$" in text or "`" in text else text


def emptied(spelling: str, home: str, folder: str, root: str) -> str:
    """What the word is when every variable in it turns out to be empty."""
    if len(spelling) > _LONGEST:
        return ""
    return _OTHER.sub("", _filled(spelling, home, folder, root))


def spread(spelling: str) -> list[str]:
    """The words that `a{b,c}` would be, as far as that is plain to see."""
    found: list[str] = []
    waiting = [spelling]
    if len(spelling) > _LONGEST:
        return waiting
    while waiting and len(found) + len(waiting) < _MOST:
        text = waiting.pop(0)
        match = _BRACES.fullmatch(text)
        if match is None:
            found.append(text)
        else:
            waiting += [match[1] + piece + match[3] for piece in match[2].split(",")]
    return found + waiting


def _filled(spelling: str, home: str, folder: str, root: str) -> str:
    text = spelling.translate(_QUOTES)
    if text.startswith("~/") or text == "~":
        text = home + text[1:]
    text = _THEIRS.sub(lambda found: f"{_HOMES.get(found[1], '/home/')}{found[1]}", text)
    text = _HOME.sub(lambda _: home, text)
    text = _TOP.sub(lambda _: root, text)
    return _HERE.sub(lambda _: folder, text)
