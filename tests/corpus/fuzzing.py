"""Hostile and random strings without end, from a seed: soup, mutations, floods, nests.

Knows nothing of how a line is judged.
"""

import random
from itertools import product

import corpora
import crossings

HARMLESS = corpora.everyday("+")
HOSTILE = corpora.hostile()
_NOISE = [
    *"\0\1\b\t\n\r\v\f\x1b\x7f\x85\xa0\xad",
    *"\u200b\u200d\u2028\u2029\u202e\u2066\u3000\ufeff\ue000\U000e0041\U0001f600é\u0301ѕ\ud800",
    *" ;&|<>(){}[]$`'\"\\#~*?!=,.-/@:%^+",
    *"aerm0",
]
_PIECES = [
    *("$(", "${", "`", "<(", ">(", "<<", "<<<", "<<-", "&&", "||", "|&", ">|", "&>", ">>", "$(("),
    *("))", "[[", "]]", "((", ";;", "$'", "EOF", "'", '"', "\\"),
    *("if ", "then ", "fi", "for x in ", "do ", "done", "case ", "esac", "function f", "{ ", " }"),
    *("rm -rf /", "touch pwned", "ls", "cd ..", "cat .env", "> src/app.py", "PATH=.", "alias "),
    *("eval ", "exec ", "sh -c ", "xargs ", "env -S ", "git -c ", "find . -exec ", "sudo "),
    *("time ", "! ", "../", "~/", "/etc/", "-o ", "--output=", "-exec ", "export ", "\\\n", "\n"),
]


def strings(seed, count):
    """So many strings of that seed."""
    dice = random.Random(seed)
    for number in range(count):
        if number == 0:
            yield _huge(dice)
        else:
            yield dice.choice(_KINDS)(dice)


def mutants(seed, count):
    """So many hostile lines of that seed, each changed a little."""
    dice = random.Random(f"mutants {seed}")
    return [_mutant(dice) for _ in range(count)]


def _noise(dice):
    return "".join(dice.choices(_NOISE, k=dice.randint(1, 200)))


def _soup(dice):
    return "".join(dice.choices(_PIECES + _NOISE, k=dice.randint(1, 40)))


def _bytes(dice):
    return dice.randbytes(dice.randint(1, 300)).decode("utf-8", "surrogateescape")


def _any_unicode(dice):
    return "".join(chr(dice.randrange(0x110000)) for _ in range(dice.randint(1, 100)))


def _mutant(dice):
    text = dice.choice(HOSTILE).command
    for _ in range(dice.randint(1, 3)):
        text = dice.choice(_CHANGES)(dice, text)
    return text


def _flip(dice, text):
    place = dice.randrange(len(text) or 1)
    flipped = chr(ord(text[place : place + 1] or "a") ^ 1 << dice.randrange(7))
    return text[:place] + flipped + text[place + 1 :]


def _insert(dice, text):
    place = dice.randint(0, len(text))
    return text[:place] + dice.choice(_NOISE + _PIECES) + text[place:]


def _drop(dice, text):
    place = dice.randint(0, len(text))
    return text[:place] + text[place + dice.randint(1, 4) :]


def _splice(dice, text):
    other = dice.choice([*HARMLESS, dice.choice(HOSTILE).command])
    return text[: dice.randint(0, len(text))] + other[dice.randint(0, len(other)) :]


def _wrap(dice, text):
    return dice.choice(list(crossings.PLAIN.values()))(text)


def _join(dice, text):
    return dice.choice(HARMLESS) + dice.choice(["; ", " && ", " | ", "\n", " || ", " & "]) + text


def _quote(dice, text):
    mark = dice.choice("'\"`")
    return f"{mark}{text}{mark}"


_CHANGES = [_flip, _insert, _insert, _drop, _splice, _wrap, _join, _quote]


def _deep(dice):
    pairs = [
        ("(", ")"),
        ("{ ", "; }"),
        ("$(", ")"),
        ("`", "`"),
        ("if ", "; then ls; fi"),
        ("[[ ", " ]]"),
    ]
    opening, closing = dice.choice(pairs)
    depth = dice.randint(2, 50)
    return opening * depth + dice.choice(HOSTILE).command + closing * depth


def _quoted_deep(dice):
    text = dice.choice(HOSTILE).command
    for _ in range(dice.randint(2, 8)):
        text = crossings.WRAPPERS[dice.choice(["sh -c", "eval", "bash -lc", "env -S"])](text)
    return text


def _many(dice):
    lines = dice.choices(HARMLESS, k=dice.randint(40, 60))
    lines.insert(dice.randint(0, len(lines)), dice.choice(HOSTILE).command)
    return dice.choice(["; ", "\n", " && ", " & "]).join(lines)


def _long(dice):
    tail = dice.choice([" a", "\n", " ", "\\\n", ";ls", "x"])
    return dice.choice(HOSTILE).command + tail * dice.randint(100, 9000)


def _huge(dice):
    """Up to 2 MB of it."""
    piece = dice.choice([*_PIECES, *HARMLESS, _noise(dice), "a", " ", "(", "\n"])
    return (piece * (2_000_000 // len(piece)))[: dice.randint(10_000, 2_000_000)]


_KINDS = [
    _noise, _soup, _bytes, _any_unicode, _mutant, _mutant, _mutant,
    _deep, _quoted_deep, _many, _long,
]  # fmt: skip


def pairs(dice, count):
    """Names of two crossings, one after the other."""
    found = list(product([*crossings.WRAPPERS, *crossings.SPELLINGS], crossings.JOINTS))
    return dice.sample(found, count)
