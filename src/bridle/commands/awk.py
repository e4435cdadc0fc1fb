"""Is an awk program one that only prints? A strict reader: what it does not know is not.

awk can run programs (`system`, pipes), write files (`>`) and read any (`getline`, `ARGV`). A pipe
and a file belong to `print`: a program without that word, or without `|` and `>`, is harmless
wherever its strings and patterns end. Where it has both a `>` and a `print` it is read closely.
"""

import re

_FORBIDDEN = re.compile(
    r"system|getline|close|fflush|ARGV|ARGC|ARGIND|SYMTAB|FUNCTAB|PROCINFO|@|#|\\\n|extension"
)
_WRITES = re.compile(r'>>|>\s*"')
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<number>\d+(?:\.\d+)?)|(?P<mark>\|\||&&|>=|<=|==|!=|\+\+|--|[-+*%^]=|\n|.)"""
)
# No two awks agree on a slash, a bracket or an empty set inside of brackets; nor on an escaped end.
_REGEX = re.compile(r"""/(?:[^/\\\n\["]|\\[^\n"]|\[\^?(?:[^\]\[\\\n/"]|\\[^\]\[\n/"])+\])+/""")
_BEFORE_REGEX = frozenset({"", "(", ",", "{", "}", ";", "!", "~", "&&", "||", "\n"})
_VALUES = frozenset({"word", "number", "string"})
# Words after which a slash may begin a pattern: keywords, and what is called without parentheses.
_KEYWORDS = frozenset(
    [
        *("print", "printf", "return", "in", "else", "do", "case", "exit", "length", "delete"),
        *("next", "nextfile", "break", "continue", "default", "switch", "if", "while", "for"),
        *("function", "func", "BEGIN", "END", "BEGINFILE", "ENDFILE"),
    ]
)
_PRINTS = frozenset({"print", "printf"})
_MOST = 4096


def only_prints(program: str) -> bool:
    """Does the program do nothing but print?"""
    if len(program) > _MOST or _FORBIDDEN.search(program):
        return False
    if "print" not in program:
        return True
    if "|" in program.replace("||", "") or _WRITES.search(program):
        return False
    return ">" not in program or _compares(program)


def _compares(program: str) -> bool:
    """Is every `>` in it a comparison?"""
    at, braces, parens = 0, 0, 0
    last, kind = "", ""
    while at < len(program):
        if program[at] == "/":
            at, last, kind = _slash(program, at, last, kind)
            if at < 0:
                return False
            continue
        found = _TOKEN.match(program, at)
        if found is None:
            return False
        at = found.end()
        if found.lastgroup == "space":
            continue
        last, kind = found.group(), found.lastgroup or ""
        braces += (last == "{") - (last == "}")
        parens += (last == "(") - (last == ")")
        if not _is_harmless(last, kind, braces, parens):
            return False
    return braces == 0 and parens == 0


def _slash(program: str, at: int, last: str, kind: str) -> tuple[int, str, str]:
    """Division or the begin of a pattern? Where that cannot be said, -1."""
    if (kind in _VALUES and last not in _KEYWORDS) or last == "]":
        return at + 1, "/", "mark"
    found = _REGEX.match(program, at)
    if last not in _BEFORE_REGEX or found is None:
        return -1, "", ""
    return found.end(), found.group(), "string"


def _is_harmless(token: str, kind: str, braces: int, parens: int) -> bool:
    if kind == "word":  # `for (…; …; print > file)` has a statement in its parentheses
        return token not in _PRINTS or parens == 0
    if kind != "mark":
        return True
    if token == ">":  # inside braces it writes a file, unless it stands in parentheses
        return braces == 0 or parens > 0
    return token not in ("|", '"', "`", "\\", "'")
