"""Variables and other expansions of the shell: which may be set, and what they may stand for."""

import re

# The variables that may be set without approval. Most variables can change what a program does, or
# which program runs, so only a few are harmless, and those only with a plain value.


HARMLESS = frozenset(
    [
        *("LANG", "LANGUAGE", "TZ", "NO_COLOR", "CI", "FORCE_COLOR", "CLICOLOR"),
        *("CLICOLOR_FORCE", "COLUMNS", "LINES", "TERM", "COLORTERM", "NODE_ENV"),
        *("RUST_BACKTRACE", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"),
        *("DEBUG", "VERBOSE", "PYTHONIOENCODING", "PYTHONUTF8", "CARGO_TERM_COLOR"),
        *("PY_COLORS", "DJANGO_COLORS", "TQDM_DISABLE", "SOURCE_DATE_EPOCH"),
    ]
)
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.,:@+-]*").fullmatch
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*").fullmatch


def reason_to_ask(name: str, value: str) -> str:
    """Say why it needs approval to set a variable, nothing if it does not."""
    name = name.removesuffix("+")
    if name == "TZ":
        return "" if _ZONE(value) else f"sets {name} to something unusual"
    if (name in HARMLESS or re.fullmatch(r"LC_[A-Z]+", name)) and _PLAIN_VALUE(value):
        return ""
    return f"sets {name[:40]}, which can change what a program does"


_GIT_VARIABLE = re.compile(r"GIT_(?:DIR|COMMON_DIR|CONFIG\w*)").fullmatch


def reason_for_person(name: str) -> str:
    """Say why only a person may allow a variable: git would read programs from elsewhere."""
    if _GIT_VARIABLE(name.removesuffix("+")):
        return f"{name[:40]} makes git read another configuration, which can run programs"
    return ""


# What a word with an expansion most likely stands for. `x=/; rm -rf $x` is judged as `rm -rf /`,
# but only to forbid it.


_HOME = re.compile(r"\$(?:HOME\b|\{HOME\b[^}]*\})")
_HERE = re.compile(r"\$(?:PWD\b|\{PWD\b[^}]*\}|\(\s*pwd\s*\))|`\s*pwd\s*`")
_TOP = re.compile(r"\$\(\s*git rev-parse --show-toplevel\s*\)")
_OTHER = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|`[^`]*`|\$\w+|\$[@*#?!$-]")
_USER_HOME = re.compile(r"\A~([A-Za-z_][\w-]*)(?=/|\Z)")
_HOMES = {"root": "/"}
_BRACES = re.compile(r"(.*?)(?<!\$)\{([^{}]*,[^{}]*)\}(.*)", re.DOTALL)
_MAX_WORD = 1000  # characters; longer words are not looked into
_MAX_WORDS = 16  # that braces are expanded to
_QUOTES = str.maketrans("", "", "\"'\\")


def likely_value(source: str, home: str, folder: str, root: str) -> str:
    """Return what a word stands for if its only expansions are `$HOME`, `$PWD` and alike."""
    if len(source) > _MAX_WORD:
        return ""
    text = _substitute(source, home, folder, root)
    return "" if "$" in text or "`" in text else text


def value_if_empty(source: str, home: str, folder: str, root: str) -> str:
    """Return what a word is if every variable in it is empty."""
    if len(source) > _MAX_WORD:
        return ""
    return _OTHER.sub("", _substitute(source, home, folder, root))


def expand_braces(source: str) -> list[str]:
    """Return the words that `a{b,c}` expands to, within limits."""
    words: list[str] = []
    waiting = [source]
    if len(source) > _MAX_WORD:
        return waiting
    while waiting and len(words) + len(waiting) < _MAX_WORDS:
        text = waiting.pop(0)
        match = _BRACES.fullmatch(text)
        if match is None:
            words.append(text)
        else:
            waiting += [match[1] + piece + match[3] for piece in match[2].split(",")]
    return words + waiting


def _substitute(source: str, home: str, folder: str, root: str) -> str:
    text = source.translate(_QUOTES)
    if text.startswith("~/") or text == "~":
        text = home + text[1:]
    text = _USER_HOME.sub(lambda match: f"{_HOMES.get(match[1], '/home/')}{match[1]}", text)
    text = _HOME.sub(lambda _: home, text)
    text = _TOP.sub(lambda _: root, text)
    return _HERE.sub(lambda _: folder, text)


_MAX_LINE = 4000  # characters; longer lines are not looked into
_MAX_LINES = 6  # that are tried, one for each value of a variable
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
    """Return the line with the values of variables that can be seen in it, one line per value."""
    if len(text) > _MAX_LINE or ("$" not in text and "`" not in text and "alias" not in text):
        return []
    values = _values(text)
    plain = text.replace('"$@"', "$@")
    flat = _FALLBACK.sub(
        lambda match: f"${{{match[1]}}}" if match[1] in values else match[2], plain
    )
    flat = _ECHO_IN_BACKTICKS.sub(r"\1", _ECHO_SUBSTITUTION.sub(r"\1", flat))
    flat = "\n".join([flat, *map(_unquote, _ALIAS.findall(text))])
    count = min(_MAX_LINES, max(map(len, values.values()), default=1))
    lines = []
    for index in range(count):
        chosen = {name: options[min(index, len(options) - 1)] for name, options in values.items()}
        lines.append(_insert_values(flat, chosen))
    return [line for line in dict.fromkeys(lines) if line != text]


def _values(text: str) -> dict[str, list[str]]:
    """Return the names that get values in a text, each with all of its values."""
    values: dict[str, list[str]] = {}
    for name, value in _SET.findall(text):
        values.setdefault(name, []).append(_unquote(value))
    for name, words in _LOOP.findall(text):
        values.setdefault(name, []).extend(map(_unquote, words.split()))
    calls = [call for name in _FUNCTION.findall(text) for call in _calls_of(name, text)]
    for words in [*calls, *_POSITIONS.findall(text)]:
        for number, word in enumerate(words.split()[:9], 1):
            values.setdefault(str(number), []).append(_unquote(word))
        values.setdefault("@", []).append(words)
        values.setdefault("*", []).append(words)
    return {
        name: options for name, options in values.items() if options and name not in _KNOWN_NAMES
    }


def _calls_of(name: str, text: str) -> list[str]:
    return re.findall(rf"(?:^|(?<=[\s;&|])){re.escape(name)}[ \t]+([^;&|\n(){{}}]+)", text)


def _unquote(word: str) -> str:
    return word.strip("'\"")


def _insert_values(text: str, values: dict[str, str]) -> str:
    """Replace variables by their values; twice, because a value may contain a variable."""
    for _ in range(2):
        text = _USE.sub(lambda match: values.get(match[1] or match[2], match[0]), text)
        text = _ECHO_IN_BACKTICKS.sub(r"\1", _ECHO_SUBSTITUTION.sub(r"\1", text))
    return text[: 2 * _MAX_LINE]
