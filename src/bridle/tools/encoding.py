"""Decode the bytes of a file to text, and encode the text again byte for byte. Pure.

A byte order mark says whether a file is UTF-8 or UTF-16. A file without one is read as UTF-8, or as
Latin-1 if it cannot be UTF-8; the model is told so. A file that is UTF-8 except for a few bad bytes
stays UTF-8: those bytes are kept, and shown as replacement characters.
"""

import re

from msgspec import Struct

from bridle.errors import ToolError
from bridle.workspace.text import one_line

HEAD = 8192  # bytes at the start of a file; a NUL among them makes it binary
_ONLY_IN_UTF8 = re.compile("[^\x00-\x7f\udc80-\udcff]")  # neither ASCII nor a bad byte
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8", ""),
    (b"\xff\xfe", "utf-16-le", "the file is UTF-16"),
    (b"\xfe\xff", "utf-16-be", "the file is UTF-16"),
)


class Encoding(Struct, frozen=True, gc=False):
    """How the text of a file is encoded. `bom` is its byte order mark, `note` is for the model."""

    codec: str = "utf-8"
    bom: bytes = b""
    note: str = ""
    errors: str = "strict"

    def encode(self, text: str, path: str) -> bytes:
        """Return the bytes of a file with this text. Raise `ToolError` if that is impossible."""
        try:
            return self.bom + text.encode(self.codec, self.errors)
        except UnicodeEncodeError as error:
            character = text[error.start]
            if "\ud800" <= character <= "\udfff":
                message = (
                    f"The content is not valid text: a lone surrogate at character {error.start}."
                )
            else:
                message = (
                    f"`{one_line(path, 200)}` is encoded as {self.codec}, which has no "
                    f"{one_line(character)} (U+{ord(character):04X}). "
                    "Write the whole file to make it UTF-8."
                )
            raise ToolError(message) from error


def detect_encoding(path: str, head: bytes, size: int) -> Encoding:
    """Return the encoding that the start of a file suggests. Raise `ToolError` if it is binary."""
    for bom, codec, note in _BYTE_ORDER_MARKS:
        if head.startswith(bom):
            return Encoding(codec, bom, note)
    if b"\0" in head[:HEAD]:
        raise ToolError(
            f"`{one_line(path, 200)}` is a binary file ({size:,} bytes); it is not shown. "
            "Use shell with a program that knows the format."
        )
    return Encoding()


def decode(path: str, data: bytes) -> tuple[str, Encoding]:
    """Return the text of a whole file and its encoding. Raise `ToolError` if it is binary."""
    encoding = detect_encoding(path, data[:HEAD], len(data))
    body = data[len(encoding.bom) :]
    try:
        return body.decode(encoding.codec), encoding
    except UnicodeDecodeError as error:
        if encoding.codec != "utf-8":
            raise ToolError(
                f"`{one_line(path, 200)}` starts as {encoding.codec}, but is not valid "
                f"{encoding.codec} (byte {error.start})."
            ) from error
        return _decode_damaged(body, encoding.bom, error.start)


def _decode_damaged(body: bytes, bom: bytes, position: int) -> tuple[str, Encoding]:
    """Decode text that is not valid UTF-8: as Latin-1, or as UTF-8 with a few bad bytes."""
    problem = f"the file is not valid UTF-8 (byte {position + len(bom)})"
    text = body.decode("utf-8", "surrogateescape")
    if bom or _ONLY_IN_UTF8.search(text):
        note = f"{problem}; bad bytes are shown as \ufffd"
        return text, Encoding("utf-8", bom, note, "surrogateescape")
    return body.decode("latin-1"), Encoding("latin-1", b"", f"{problem}; it is read as Latin-1")


def replace_bad_bytes(text: str) -> str:
    """Return the text with its bad bytes as replacement characters."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def split_lines(text: str) -> list[str]:
    """Split a text as editors do: only a line feed ends a line."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
