"""How words are spelled inside a line of JSON, so that raw bytes can be searched for them.

A needle only says where it is worth looking: every line with the words has it, and some others may.
Whether the words are really said there is for whoever decodes the line. Pure; no file is opened.
"""

import re
from collections.abc import Iterator
from functools import cache

_PLAIN = re.compile(r"[ !#-.0-\[\]-~]+")  # written as it is, whoever writes the JSON
_SHORT = {one: f"\\{one}" for one in '"\\/'} | {
    one: f"\\{name}" for one, name in zip("\b\f\n\r\t", "bfnrt", strict=True)
}
_LEAST = 3  # letters; fewer are in nearly every line
_MOST = 40  # characters that are looked for; more would find no less


class Needle:
    """Some bytes, or a pattern of bytes, that a line with the words must have."""

    def __init__(self, literal: bytes, pattern: str, firsts: list[bytes], fold: bool) -> None:
        self._literal = literal.lower() if fold else literal
        self._pattern = pattern
        self._search = None if literal else re.compile(pattern.encode()).search
        self._firsts = firsts
        self._fold = fold and bool(literal)

    @property
    def for_ripgrep(self) -> str:
        """The same as a pattern of ripgrep's."""
        flags = "i-u" if self._fold else "-u"
        return f"(?{flags}:{self._pattern})"

    def lines(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Where lines begin and end that have it. The block holds whole lines."""
        if not self._literal and not self._may_hold(block):
            return
        folded = block.lower() if self._fold else block
        at = self._next(folded, 0)
        while at >= 0:
            end = block.find(b"\n", at) + 1 or len(block)
            yield block.rfind(b"\n", 0, at) + 1, end
            at = self._next(folded, end)

    def _may_hold(self, block: bytes) -> bool:
        """Is the first character there at all, in any spelling? Much faster than the pattern."""
        coded = b"\\u" in block
        return any(one in block for one in self._firsts if coded or not one.startswith(b"\\u"))

    def _next(self, block: bytes, start: int) -> int:
        if self._search is None:
            return block.find(self._literal, start)
        found = self._search(block, start)
        return found.start() if found is not None else -1


def needle_for(words: str, *, ignore_case: bool) -> Needle:
    """The needle of words that are meant as they are."""
    plain = max(_PLAIN.findall(words), key=len, default="")[:_MOST]
    if len(plain) >= _LEAST:
        return _literal(plain, ignore_case)
    spelled = [_spellings(one, ignore_case) for one in words[:_MOST]]
    pattern = "".join(f"(?:{'|'.join(map(_escaped, one))})" for one in spelled)
    return Needle(b"", pattern, spelled[0], False)


def needle_in(expression: str, *, ignore_case: bool) -> Needle | None:
    """A needle that every match of a regular expression has; None where none is sure to be."""
    if re.search(r"[(|]", expression):  # what is inside may be left out
        return None
    outside = re.sub(r"\\[\s\S]|\[\^?\]?[^\]]*\]|\{[^}]*\}", _gap, expression)
    runs = re.split(r"[\0.^$*+?]", re.sub(r"[\s\S](?=[*?\1])", "\0", outside).replace("\1", "\0"))
    plain = max((one for run in runs for one in _PLAIN.findall(run)), key=len, default="")
    return _literal(plain[:_MOST], ignore_case) if len(plain) >= _LEAST else None


def _gap(found: "re.Match[str]") -> str:
    """Something that is no letter; a count (as `*`) makes the letter before it unsure."""
    return "\1" if found[0].startswith("{") else "\0"


def _literal(plain: str, ignore_case: bool) -> Needle:
    data = plain.encode()
    return Needle(data, _escaped(data), [data], ignore_case)


def _escaped(data: bytes) -> str:
    """Bytes as a pattern that Python and ripgrep read alike."""
    return "".join(
        chr(one) if chr(one).isalnum() and one < 128 else f"\\x{one:02x}" for one in data
    )


def _spellings(one: str, ignore_case: bool) -> list[bytes]:
    """Every way in which JSON may spell a character."""
    found: dict[bytes, None] = {}
    for letter in _cases(one) if ignore_case else [one]:
        units = letter.encode("utf-16-be", "surrogatepass").hex()
        code = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        if letter >= " " and letter not in '"\\':
            found[letter.encode("utf-8", "surrogatepass")] = None
        found[_SHORT.get(letter, code).encode()] = None
        found[code.encode()] = None
        found[code.upper().replace("U", "u").encode()] = None
    return list(found)


def _cases(one: str) -> list[str]:
    """The letter, and what is the same to a search that minds no case."""
    return list(dict.fromkeys([one, *re.findall(re.escape(one), _letters(), re.IGNORECASE)]))


@cache
def _letters() -> str:
    return "".join(map(chr, (*range(0xD800), *range(0xE000, 0x1F000))))
