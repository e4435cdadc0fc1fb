r"""Text from elsewhere, made safe to show, and shortened. Pure; used by every interface and tool.

`neutral` makes visible what a terminal or a page would obey or a reader would not see: control
characters and escape sequences, carriage returns, bidi controls, zero-width and tag characters,
variation selectors, lone surrogates, line and paragraph separators. Each becomes an escape such as
`\x1b` or `\u202e`; all other text stays as it is, in any language.

Three kinds of invisible characters are part of ordinary text, and stay, one at a time, where they
belong: a joiner between two emoji or inside Arabic and Indic words, a variation selector right
after an emoji or an ideograph, a Mongolian selector after a Mongolian letter. Anywhere else they
are shown. Flags in tag characters (Wales, Scotland) become escapes: tags can carry hidden text.
"""

import re
from functools import cache, lru_cache

_EMOJI = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff"
_EMOJI += "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_JOINING = "\u0620-\u06ff\u0750-\u077f\u08a0-\u08ff\u0900-\u109f\u1780-\u17b3\u17b6-\u17ff"
_JOINING += "\u1820-\u18aa\u1b00-\u1bff\ua800-\uabff\ufb50-\ufdcf\ufdf0-\ufdff"
_IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# Invisible characters, and those that a terminal obeys. Ranges, for a character class.
_HIDDEN = (
    "\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

_ALLOWED = (
    rf"(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])"
    rf"|(?<=[{_EMOJI}]\ufe0f)\u200d(?=[{_EMOJI}])"
    rf"|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
    rf"|(?<=[{_EMOJI}])[\ufe0e\ufe0f]"
    r"|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    rf"|(?<=[{_IDEOGRAPHS}])[\ufe00-\ufe02\U000e0100-\U000e01ef]"
    r"|(?<=[\u1820-\u18aa])[\u180b-\u180f]"
)


@cache
def _allowed_pattern() -> re.Pattern[str]:
    """Return where invisible characters may stay. Compiled when the first one is found."""
    return re.compile(_ALLOWED)


_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


@lru_cache(maxsize=32)
def _hidden_pattern(keep: str, ascii_only: bool) -> re.Pattern[str]:
    """Return what to escape, in ASCII or in any text: that takes 5 ms, so only if needed."""
    controls = "".join(f"\\x{code:02x}" for code in range(0x20) if chr(code) not in keep)
    return re.compile(f"[{controls}\\x7f]" if ascii_only else f"[{controls}{_HIDDEN}]")


def neutral(text: str, *, keep: str = "\n\t") -> str:
    """Return the text with invisible and control characters as escapes. Idempotent."""
    return _hidden_pattern(keep, text.isascii()).sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if code > 0xFF and _allowed_pattern().match(match.string, match.start()):
        return character
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible_json(text: str) -> str:
    """Return JSON in which invisible and control characters are JSON escapes: the same values."""
    return _hidden_pattern("\n", text.isascii()).sub(_json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
    return "".join(f"\\u{unit}" for unit in units)


def one_line(text: str, limit: int = 80) -> str:
    """Return the text as one line of at most so many characters, for lists and titles."""
    rough = text[: 8 * limit + 1024]  # enough, however long the text is
    line = neutral(" ".join(rough.split()), keep="")
    if len(line) <= limit and len(rough) == len(text):
        return line
    return line[: max(limit - 1, 0)].rstrip(" \u200c\u200d\ufe0f") + "…"[:limit]


def shorten(text: str, limit: int) -> str:
    """Return beginning and end of a long text, with a line between that says what is left out."""
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
    """Return where a line ends a little before a position, or the position."""
    end = text.rfind("\n", at - at // 8, at + 1)
    return at if end < 0 else end


def _line_start(text: str, at: int) -> int:
    """Return where a line starts a little after a position, or the position."""
    end = text.find("\n", at - 1, at + (len(text) - at) // 8)
    return at if end < 0 else end + 1


def quantity(number: float, noun: str, plural: str = "", *, shown: str = "") -> str:
    """Return a number with its noun: `1 line`, `2,000 lines`, `0.5 seconds`.

    `plural` is needed only if it is not the noun with an s. `shown` replaces the number, for a
    rounded one such as `12.4k`.
    """
    if not shown:
        shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or f'{noun}s'}"


def size_of(count: float) -> str:
    """Return a number of bytes with its unit, rounded."""
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return (
                f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
            )
        count /= 1000
    return f"{count:.1f} GB"


_CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}


def is_cache(path: str) -> bool:
    """Is it a cache of a tool, which creates it again if it is missing?"""
    return not _CACHES.isdisjoint(path.split("/")) or path.endswith(".pyc")


def flat(text: str) -> str:
    """Return the text on one line, with control characters as escapes."""
    return neutral(" ".join(text.split()))


# The type of an image, by its first bytes and not by its name.

MOST_PICTURE_BYTES = 3_500_000  # what every vendor takes once it is base64

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def media_type_of(data: bytes) -> str:
    """Return the media type, or empty for what no model takes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _MAGIC if data.startswith(magic)), "")
