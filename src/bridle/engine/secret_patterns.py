r"""What tokens of well-known services look like: a table, and how one row is tried on a text.

A row is looked at only where one of its literals stands, so ordinary text costs one screen
(`screen_of`) and no more. Knows no events and no keys of this process.
The repeats in the patterns are possessive: no text makes them slow.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from math import log2
from typing import NamedTuple

_WORD = "[A-Za-z0-9]"
_DASHED = "[A-Za-z0-9_-]"
_SAYS = r"""\\*+["']?[ \t]{0,3}[=:>][ \t]{0,3}\\*+["']?"""
_VALUE = r"""[^\s"'\\`<>(){}\[\],;|]"""
_HEAD = r"[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_BREAK = r"(?:\\++[nrt]|\s)++(?:[0-9]{1,6}(?:\\++t|[\t|:]) ?)?"  # and the number of a line
_DEFAULTS = frozenset({"", "password", "passwd", "pass", "secret", "changeme", "example"})


def _any(value: str) -> bool:
    return True


def _numbered(value: str) -> bool:
    """A digit and a letter: what is made by chance has both, words joined by dashes have not."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _mixed(value: str) -> bool:
    """Like something made by chance: more than a number, a name or a path of names."""
    if re.fullmatch(r"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)++", value) or value[0] in "$%*":
        return False
    cases = not value.islower() and not value.isupper() and len(value) >= 20
    return any(map(str.isalpha, value)) and (_numbered(value) or cases) and entropy(value) >= 2.75


def _chosen(value: str) -> bool:
    """A password that somebody has chosen, and no variable or the word itself."""
    return value.lower() not in _DEFAULTS and value[0] not in "$%*{<[" and len(set(value)) > 1


def entropy(value: str) -> float:
    """Bits a character, by how often each occurs."""
    total = len(value)
    shares = [value.count(one) / total for one in set(value)]
    return -sum(share * log2(share) for share in shares)


class Shape(NamedTuple):
    """One kind of token.

    `body` is matched behind one of the `starts`; the secret is its group, where it has one, and
    otherwise all of it with its start. `growing` matches what stands there while more may come.
    `alone`: no letter or digit may stand before it.
    """

    name: str
    starts: tuple[str, ...]
    body: str
    growing: str
    fits: Callable[[str], bool] = _numbered
    alone: bool = False


def _run(name: str, starts: str, kind: str, least: int, *, alone: bool = False) -> Shape:
    """A start, and at least so many characters of one kind."""
    return Shape(name, tuple(starts.split()), f"{kind}{{{least},}}+", f"{kind}*+", alone=alone)


def _named(name: str, starts: tuple[str, ...], value: str, least: int, between: str) -> Shape:
    """A name, something in between, and a value, which alone is the secret."""
    return Shape(
        name,
        starts,
        rf"{between}({value}{{{least},}}+)(?![(\[{{])",
        f"{between}({value}*+)",
        fits=_mixed,
    )


SHAPES = (
    Shape("Anthropic", ("sk-",), f"ant-{_DASHED}{{20,}}+", f"{_DASHED}*+", alone=True),
    Shape(
        "OpenAI",
        ("sk-",),
        f"(?:(?:proj|svcacct|admin|None)-{_DASHED}{{20,}}+|{_WORD}{{20,}}+)",
        f"{_DASHED}*+",
        alone=True,
    ),
    Shape("OpenRouter", ("sk-",), f"or-(?:v[0-9]-)?{_WORD}{{32,}}+", f"{_DASHED}*+", alone=True),
    _run("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "[A-Za-z0-9_]", 22),
    Shape(
        "GitLab",
        ("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glft-", "glsoat-"),
        rf"{_DASHED}{{20,}}+(?:\.{_DASHED}++)*+",
        "[A-Za-z0-9_.-]*+",
    ),
    Shape(
        "AWS key id",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        f"[A-Z0-9]{{16}}(?!{_WORD})",
        "[A-Z0-9]{0,16}",
        fits=_any,
    ),
    Shape(
        "AWS secret key",
        ("ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey"),
        f"{_SAYS}([A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+])",
        f"{_SAYS}([A-Za-z0-9/+]{{0,40}})",
    ),
    _run("Google", "AIza", _DASHED, 35),
    _run("Google client", "GOCSPX-", _DASHED, 20),
    _run("Slack", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xapp-", "[A-Za-z0-9-]", 16),
    Shape(
        "Slack hook",
        ("://",),
        r"hooks\.slack\.com/services/([A-Za-z0-9/]{20,}+)",
        r"hooks\.slack\.com/services/([A-Za-z0-9/]*+)",
    ),
    _run("Stripe", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", _WORD, 16),
    _run("npm", "npm_", _WORD, 36),
    _run("PyPI", "pypi-AgE", _DASHED, 16),
    _run("Hugging Face", "hf_", _WORD, 30, alone=True),
    Shape(
        "JWT",
        ("eyJ",),
        rf"{_DASHED}{{8,}}+\.(?:eyJ{_DASHED}{{8,}}+\.{_DASHED}*+|(?:{_DASHED}*+\.){{3}}{_DASHED}*+)",
        "[A-Za-z0-9_.-]*+",
    ),
    Shape(
        "private key",
        ("-----BEGIN",),
        rf"{_HEAD}(?:(?:[^-]++|-(?!----(?:END|BEGIN)))*+-----END[ A-Z0-9]{{0,40}}-----"
        rf"|(?:{_BREAK}[A-Za-z0-9+/=]{{16,}}+)++(?:{_BREAK}[A-Za-z0-9+/]++={{1,2}}+)?)",
        rf"(?:{_HEAD}(?:[A-Za-z0-9+/=\s\\:,.()@|]++|-(?!----(?:END[ A-Z0-9]{{0,40}}-----|BEGIN)))*+"
        r"|[ A-Z0-9]{0,60}-{0,4})",
        fits=_any,
    ),
    _named("bearer token", ("Bearer ", ": bearer "), "[A-Za-z0-9._~+/=-]", 16, " ?"),
    _named(
        "basic login", ("Authorization: Basic ", "authorization: Basic "), "[A-Za-z0-9+/=]", 12, ""
    ),
    Shape(
        "password in a URL",
        ("://",),
        r"""([^\s/@:"'<>\\]{0,64}):(?!\1@)([^\s@"'<>/\\]{1,256}+)@(?=[\w\[.-])""",
        r"""([^\s/@:"'<>\\]{0,64}):([^\s@"'<>/\\]{1,256}+)@?""",
        fits=_chosen,
    ),
    _named(
        "variable",
        ("_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_API_KEY", "_ACCESS_KEY"),
        _VALUE,
        8,
        f"(?:_KEY)?{_SAYS}",
    ),
    Shape(
        "short variable",
        ("TOKEN", "SECRET", "PASSWORD", "API_KEY"),
        rf"(?:_KEY)?{_SAYS}({_VALUE}{{16,}}+)(?![(\[{{])",
        rf"(?:_KEY)?{_SAYS}({_VALUE}*+)",
        fits=_mixed,
        alone=True,
    ),
)

LONGEST = 96  # characters before a secret that its row may have to see
_RARE = "_-JA:B" + "QZXKVWGYUPFHNLDCMRTSIOE" + "0123456789" + "qzjxkvbpygfwmucldrhsnioate"
_RANK = {one: rank for rank, one in enumerate(_RARE)}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)  # when it is first needed: most programs never meet a token


_ESCAPE = re.compile(  # what ends in a letter and is not one: an escape of JSON, a colour
    r"(?:\\[nrtbfv]|\\u[0-9A-Fa-f]{4}|(?:\x1b|\\u001b|\\x1b|\\e|\\033)\[[0-9;]{0,8}[mK])\Z"
)


def anchor(literal: str) -> int:
    """The place of its rarest character: the one to look for."""
    ranks = [(_RANK.get(one, len(_RANK)), -place) for place, one in enumerate(literal)]
    return -min(ranks)[1]


def screen_of(literals: Iterable[str]) -> str:
    """A pattern that finds the anchor of each literal: one pass over a text, for all of them.

    Where an anchor stands, its neighbour is looked at first: most are in no literal.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    for literal in literals:
        begun, whole = found.setdefault(literal[anchor(literal)], ([], []))
        (whole if anchor(literal) else begun).append(literal)
    return "|".join(_around(one, *rows) for one, rows in found.items()) or "(?!)"


def _around(one: str, begun: list[str], whole: list[str]) -> str:
    """The anchor where it stands in a literal: in those that begin with it, or in the others."""
    looks = [f"(?={re.escape(literal[1:])})" if literal[1:] else "" for literal in begun]
    if begun and all(looks):
        near = "".join(sorted({re.escape(literal[1]) for literal in begun}))
        looks = [f"(?=[{near}])(?:{'|'.join(looks)})"]
    if whole:
        near = "".join(sorted({re.escape(literal[anchor(literal) - 1]) for literal in whole}))
        looks.append(f"(?<=[{near}]{re.escape(one)})(?:{'|'.join(map(_beside, whole))})")
    return f"{re.escape(one)}(?:{'|'.join(looks)})"


def _beside(literal: str) -> str:
    """What stands before the anchor of a literal, and behind it."""
    place = anchor(literal) + 1
    ahead = f"(?={re.escape(literal[place:])})" if literal[place:] else ""
    return f"(?<={re.escape(literal[:place])}){ahead}"


class Look(NamedTuple):
    """What stands at a literal: the secret, from where on more may come, how far that reaches."""

    secret: tuple[int, int] | None
    growing: int
    reach: int


_NOTHING = Look(None, -1, 0)


def look(shape: Shape, text: str, at: int, start: str) -> Look:
    """Try a row where one of its starts stands."""
    if shape.alone and not _begins(text, at):
        return _NOTHING
    more = _compiled(shape.growing).match(text, at + len(start))
    grows = more is not None and more.end() == len(text)
    growing = (more.start(more.re.groups) if more.re.groups else at) if more and grows else -1
    reach = more.end() if more is not None else 0
    found = _compiled(shape.body).match(text, at + len(start))
    if found is None:
        return Look(None, growing, reach)
    span = found.span(found.re.groups) if found.re.groups else (at, found.end())
    return Look(span if shape.fits(text[slice(*span)]) else None, growing, reach)


def _begins(text: str, at: int) -> bool:
    before = text[max(0, at - 20) : at]
    return not before or not before[-1].isalnum() or _ESCAPE.search(before) is not None


BY_START: dict[str, tuple[Shape, ...]] = {
    start: tuple(shape for shape in SHAPES if start in shape.starts)
    for start in dict.fromkeys(start for shape in SHAPES for start in shape.starts)
}
"""The rows for each literal."""

BEGINNINGS = frozenset(start[:end] for start in BY_START for end in range(1, len(start)))
"""What may become a literal when more of it comes."""
