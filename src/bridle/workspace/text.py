r"""Text from elsewhere, made safe to look at, and cut to a size. Pure; every face and tool uses it.

`neutral` makes visible what a terminal, a page or a reader would obey or not see: control
characters and escape sequences, carriage returns, bidi controls, zero-width and tag characters,
variation selectors, lone surrogates, line and paragraph separators. Each becomes an escape such as
`\x1b` or `\u202e`; the rest stays as it is, in any language.

Three invisible things belong to honest text and are kept where they do their work, one at a time:
a joiner between two emoji or inside Arabic and Indic words, a variation selector right after an
emoji or an ideograph, a Mongolian selector after a Mongolian letter. Anywhere else they are shown.
Flags written in tag characters (Wales, Scotland) are shown as escapes: tags carry hidden text.
"""

import re
from functools import cache, lru_cache

_EMOJI = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff"
_EMOJI += "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_JOINING = "\u0620-\u06ff\u0750-\u077f\u08a0-\u08ff\u0900-\u109f\u1780-\u17b3\u17b6-\u17ff"
_JOINING += "\u1820-\u18aa\u1b00-\u1bff\ua800-\uabff\ufb50-\ufdcf\ufdf0-\ufdff"
_IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# Invisible, or obeyed by whoever shows the text. Ranges, for a character class.
_HIDDEN = (
    "\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

_HONEST = (
    rf"(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])"
    rf"|(?<=[{_EMOJI}]\ufe0f)\u200d(?=[{_EMOJI}])"
    rf"|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
    rf"|(?<=[{_EMOJI}])[\ufe0e\ufe0f]"
    r"|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    rf"|(?<=[{_IDEOGRAPHS}])[\ufe00-\ufe02\U000e0100-\U000e01ef]"
    r"|(?<=[\u1820-\u18aa])[\u180b-\u180f]"
)


@cache
def _honest() -> re.Pattern[str]:
    """Compiled when the first suspect of a longer text is met: most programs never meet one."""
    return re.compile(_HONEST)


_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


@lru_cache(maxsize=32)
def _pattern(keep: str, ascii_only: bool) -> re.Pattern[str]:
    """What is suspect in ASCII, or in any text: that takes 5 ms, so not before it is needed."""
    controls = "".join(f"\\x{code:02x}" for code in range(0x20) if chr(code) not in keep)
    return re.compile(f"[{controls}\\x7f]" if ascii_only else f"[{controls}{_HIDDEN}]")


def neutral(text: str, *, keep: str = "\n\t") -> str:
    """The text with everything invisible or obeyed written out. Idempotent."""
    return _pattern(keep, text.isascii()).sub(_written, text)


def _written(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if code > 0xFF and _honest().match(match.string, match.start()):
        return character
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible_json(text: str) -> str:
    """JSON with everything invisible or obeyed as JSON's own escapes: the values stay the same."""
    return _pattern("\n", text.isascii()).sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
    return "".join(f"\\u{unit}" for unit in units)


def one_line(text: str, limit: int = 80) -> str:
    """The text as one line of at most so many characters, for lists and titles."""
    rough = text[: 8 * limit + 1024]  # enough of it, however long it is
    line = neutral(" ".join(rough.split()), keep="")
    if len(line) <= limit and len(rough) == len(text):
        return line
    return line[: max(limit - 1, 0)].rstrip(" \u200c\u200d\ufe0f") + "…"[:limit]


def shorten(text: str, limit: int) -> str:
    """Beginning and end of a long text, and between them a line that says how much is missing."""
    if len(text) <= limit:
        return text
    room = limit - len(_gap(len(text), text.count("\n")))
    if room <= 0:
        return text[: max(limit, 0)]
    start = _line_end(text, room * 2 // 3)
    end = _line_start(text, len(text) - (room - start))
    return text[:start] + _gap(end - start, text.count("\n", start, end)) + text[end:]


def _gap(characters: int, lines: int) -> str:
    return f"\n[… {characters:,} characters ({lines:,} lines) are left out here …]\n"


def _line_end(text: str, at: int) -> int:
    """A place at or a little before, where a line ends, if there is one."""
    found = text.rfind("\n", at - at // 8, at + 1)
    return at if found < 0 else found


def _line_start(text: str, at: int) -> int:
    """A place at or a little after, where a line starts, if there is one."""
    found = text.find("\n", at - 1, at + (len(text) - at) // 8)
    return at if found < 0 else found + 1


def quantity(number: float, noun: str, plural: str = "", *, shown: str = "") -> str:
    """Return a number with its noun: `1 line`, `2,000 lines`, `0.5 seconds`.

    `plural` is needed only if it is not the noun with an s. `shown` replaces the number, for a
    rounded one such as `12.4k`.
    """
    if not shown:
        shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or f'{noun}s'}"


def size_of(count: float) -> str:
    """Bytes, as a person says it."""
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return (
                f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
            )
        count /= 1000
    return f"{count:.1f} GB"


_CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}


def is_cache(path: str) -> bool:
    """Is this a file or folder that a tool keeps for itself, and makes again when it is gone?"""
    return not _CACHES.isdisjoint(path.split("/")) or path.endswith(".pyc")


def flat(text: str) -> str:
    """The text on one line: line ends and tabs become spaces, control characters show."""
    return neutral(" ".join(text.split()))


# What a picture is, by its first bytes and not by its name. Pure.

MOST_PICTURE_BYTES = 3_500_000  # what every vendor takes once it is base64

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def media_type_of(data: bytes) -> str:
    """What the first bytes say; empty for what no model takes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _MAGIC if data.startswith(magic)), "")
