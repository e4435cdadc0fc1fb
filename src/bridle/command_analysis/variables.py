"""Which variables may be set before a command, or for later ones, without a question.

Most names can change what a program does, or which program it is; so only a few are harmless, and
those only with a plain value.
"""

import re

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
_PLAIN = re.compile(r"[A-Za-z0-9_.,:@+-]*").fullmatch
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*").fullmatch


def why_not(name: str, value: str) -> str:
    """Why setting that variable has to be asked about, or nothing."""
    name = name.removesuffix("+")
    if name == "TZ":
        return "" if _ZONE(value) else f"sets {name} to something unusual"
    if (name in HARMLESS or re.fullmatch(r"LC_[A-Z]+", name)) and _PLAIN(value):
        return ""
    return f"sets {name[:40]}, which can change what a program does"


_GIT = re.compile(r"GIT_(?:DIR|COMMON_DIR|CONFIG\w*)").fullmatch


def why_guarded(name: str) -> str:
    """Why only a person may allow that variable: git would take its programs from elsewhere."""
    if _GIT(name.removesuffix("+")):
        return f"{name[:40]} has git read another configuration, which can run programs"
    return ""
