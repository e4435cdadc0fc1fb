"""The variables and other expansions of the shell: what may be set, and what words stand for."""

import re

# Which variables may be set before a command, or for later ones, without asking. Most names can
# change what a program does, or which program runs, so only a few are harmless, and those only with
# a plain value.


HARMLESS = frozenset(
    [
        "LANG",
        "LANGUAGE",
        "TZ",
        "NO_COLOR",
        "CI",
        "FORCE_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "LINES",
        "TERM",
        "COLORTERM",
        "NODE_ENV",
        "RUST_BACKTRACE",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
        "DEBUG",
        "VERBOSE",
        "PYTHONIOENCODING",
        "PYTHONUTF8",
        "CARGO_TERM_COLOR",
        "PY_COLORS",
        "DJANGO_COLORS",
        "TQDM_DISABLE",
        "SOURCE_DATE_EPOCH",
    ]
)
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.,:@+-]*").fullmatch
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*").fullmatch


def reason_to_ask(name: str, value: str) -> str:
    """Why setting that variable has to be asked about, or nothing."""
    name = name.removesuffix("+")
    if name == "TZ":
        return "" if _ZONE(value) else f"sets {name} to something unusual"
    if (name in HARMLESS or re.fullmatch(r"LC_[A-Z]+", name)) and _PLAIN_VALUE(value):
        return ""
    return f"sets {name[:40]}, which can change what a program does"


_GIT_VARIABLE = re.compile(r"GIT_(?:DIR|COMMON_DIR|CONFIG\w*)").fullmatch


def reason_for_person(name: str) -> str:
    """Why only a person may allow that variable: git would take its programs from elsewhere."""
    if _GIT_VARIABLE(name.removesuffix("+")):
        return f"{name[:40]} has git read another configuration, which can run programs"
    return ""


# What a word with an expansion most likely stands for, so that the worst case is recognised:
# `x=/; rm -rf $x` is judged as `rm -rf /`, but only to forbid it.


_HOME = re.compile(r"\$(?:HOME\b|\{HOME\b[^}]*\})")
_HERE = re.compile(r"\$(?:PWD\b|\{PWD\b[^}]*\}|\(\s*pwd\s*\))|`\s*pwd\s*`")
_TOP = re.compile(r"\$\(\s*git rev-parse --show-toplevel\s*\)")
_OTHER = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|`[^`]*`|\$\w+|\$[@*#?!$-]")
_USER_HOME = re.compile(r"\A~([A-Za-z_][\w-]*)(?=/|\Z)")
_HOMES = {"root": "/"}
_BRACES = re.compile(r"(.*?)(?<!\$)\{([^{}]*,[^{}]*)\}(.*)", re.DOTALL)
_MAX_WORD = 1000  # characters of a word that are looked into
_MAX_WORDS = 16  # words that braces are spread into
_QUOTES = str.maketrans("", "", "\"'\\")


def likely_value(spelling: str, home: str, folder: str, root: str) -> str:
    """What the word stands for, if it has nothing in it but `$HOME`, `$PWD` and their like."""
    if len(spelling) > _MAX_WORD:
        return ""
    text = _substitute(spelling, home, folder, root)
    return "" if "$" in text or "`" in text else text


def value_if_empty(spelling: str, home: str, folder: str, root: str) -> str:
    """What the word is when every variable in it turns out to be empty."""
    if len(spelling) > _MAX_WORD:
        return ""
    return _OTHER.sub("", _substitute(spelling, home, folder, root))


def expand_braces(spelling: str) -> list[str]:
    """The words that `a{b,c}` would be, as far as that is plain to see."""
    found: list[str] = []
    waiting = [spelling]
    if len(spelling) > _MAX_WORD:
        return waiting
    while waiting and len(found) + len(waiting) < _MAX_WORDS:
        text = waiting.pop(0)
        match = _BRACES.fullmatch(text)
        if match is None:
            found.append(text)
        else:
            waiting += [match[1] + piece + match[3] for piece in match[2].split(",")]
    return found + waiting


def _substitute(spelling: str, home: str, folder: str, root: str) -> str:
    text = spelling.translate(_QUOTES)
    if text.startswith("~/") or text == "~":
        text = home + text[1:]
    text = _USER_HOME.sub(lambda found: f"{_HOMES.get(found[1], '/home/')}{found[1]}", text)
    text = _HOME.sub(lambda _: home, text)
    text = _TOP.sub(lambda _: root, text)
    return _HERE.sub(lambda _: folder, text)


_MAX_LINE = 4000  # characters of a line that is looked into
_MAX_LINES = 6  # values of one name that are tried
_VALUE = r"""('[^'\n]*'|"[^"$`\\\n]*"|\$\w+|[^\s;&|()<>'"$`\\]+)"""
_SET = re.compile(rf"(?:^|(?<=[\s;&|({{]))([A-Za-z_]\w*)=(?=\S){_VALUE}")
_LOOP = re.compile(r"\bfor\s+([A-Za-z_]\w*)\s+in\s+([^;\n]*)")
_FUNCTION = re.compile(r"(?:^|(?<=[\s;&|]))(?:function\s+)?([A-Za-z_][\w-]*)\s*\(\s*\)\s*\{")
_POSITIONS = re.compile(r"(?:^|(?<=[\s;&|]))set\s+--?\s+([^;&|\n]*)")
_ALIAS = re.compile(r"""\balias\s+[\w.-]+=('[^'\n]*'|"[^"\n]*"|\S+)""")
_ECHO_SUBSTITUTION = re.compile(
    r"\$\(\s*(?:echo|printf)\s+(?:-\w+\s+|'%s'\s+|%s\s+)?([^()$`;&|<>]*)\)"
)
_ECHO_IN_BACKTICKS = re.compile(r"`\s*(?:echo|printf)\s+([^()$`;&|<>]*)`")
_FALLBACK = re.compile(r"\$\{([A-Za-z_]\w*|\d):?[-=]([^{}$`]*)\}")
_USE = re.compile(r"\$(?:\{([A-Za-z_]\w*|[\d@*])(?:\[[@*\d]\])?\}|([A-Za-z_]\w*|[\d@*]))")
_KNOWN_NAMES = frozenset({"HOME", "PWD"})  # whose own values are known


def lines_with_values(text: str) -> list[str]:
    """The line as it is with each of the values that can be seen put in; none where none can."""
    if len(text) > _MAX_LINE or ("$" not in text and "`" not in text and "alias" not in text):
        return []
    values = _values(text)
    plain = text.replace('"$@"', "$@")
    flat = _FALLBACK.sub(
        lambda found: f"${{{found[1]}}}" if found[1] in values else found[2], plain
    )
    flat = _ECHO_IN_BACKTICKS.sub(r"\1", _ECHO_SUBSTITUTION.sub(r"\1", flat))
    flat = "\n".join([flat, *map(_unquote, _ALIAS.findall(text))])
    count = min(_MAX_LINES, max(map(len, values.values()), default=1))
    found = [_insert_values(flat, {name: v[min(at, len(v) - 1)] for name, v in values.items()})
             for at in range(count)]  # fmt: skip
    return [one for one in dict.fromkeys(found) if one != text]


def _values(text: str) -> dict[str, list[str]]:
    """Every name that gets a value in it, with all that it gets."""
    found: dict[str, list[str]] = {}
    for name, value in _SET.findall(text):
        found.setdefault(name, []).append(_unquote(value))
    for name, words in _LOOP.findall(text):
        found.setdefault(name, []).extend(map(_unquote, words.split()))
    calls = [call for name in _FUNCTION.findall(text) for call in _calls_of(name, text)]
    for words in [*calls, *_POSITIONS.findall(text)]:
        for at, word in enumerate(words.split()[:9], 1):
            found.setdefault(str(at), []).append(_unquote(word))
        found.setdefault("@", []).append(words)
        found.setdefault("*", []).append(words)
    return {name: values for name, values in found.items() if values and name not in _KNOWN_NAMES}


def _calls_of(name: str, text: str) -> list[str]:
    return re.findall(rf"(?:^|(?<=[\s;&|])){re.escape(name)}[ \t]+([^;&|\n(){{}}]+)", text)


def _unquote(word: str) -> str:
    return word.strip("'\"")


def _insert_values(text: str, values: dict[str, str]) -> str:
    """Twice, for a value may name another."""
    for _ in range(2):
        text = _USE.sub(lambda found: values.get(found[1] or found[2], found[0]), text)
        text = _ECHO_IN_BACKTICKS.sub(r"\1", _ECHO_SUBSTITUTION.sub(r"\1", text))
    return text[: 2 * _MAX_LINE]
