"""Bytes of a file as text, and back again byte for byte. Pure.

UTF-8 and UTF-16 are known by their marks; what has no mark is UTF-8, and where it is not, Latin-1,
which is said aloud. A file that is UTF-8 but for some bad bytes stays UTF-8: they are kept as they
are, and shown as a replacement character.
"""

import re

from msgspec import Struct

from bridle.errors import ToolError
from bridle.workspace.text import one_line

_BEYOND = re.compile("[^\x00-\x7f\udc80-\udcff]")  # what only UTF-8 can have been

HEAD = 8192  # bytes in which a NUL makes a file binary

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8", ""),
    (b"\xff\xfe", "utf-16-le", "the file is UTF-16"),
    (b"\xfe\xff", "utf-16-be", "the file is UTF-16"),
)


class Coding(Struct, frozen=True, gc=False):
    """How a file writes its text. `note` is what has to be said about it."""

    codec: str = "utf-8"
    mark: bytes = b""
    note: str = ""
    errors: str = "strict"

    def encode(self, text: str, path: str) -> bytes:
        """The text as bytes of this file. Raise `ToolError` for what cannot be written so."""
        try:
            return self.mark + text.encode(self.codec, self.errors)
        except UnicodeEncodeError as error:
            raise ToolError(_unwritable(path, self.codec, text, error)) from error


def _unwritable(path: str, codec: str, text: str, error: UnicodeEncodeError) -> str:
    wrong = text[error.start]
    if "\ud800" <= wrong <= "\udfff":
        return f"The content is not valid text: a lone surrogate at character {error.start}."
    return (
        f"`{one_line(path, 200)}` is {codec}, and {one_line(wrong)} (U+{ord(wrong):04X}) cannot be "
        "written so. Write the whole file anew to make it UTF-8."
    )


def coding_of(path: str, head: bytes, size: int) -> Coding:
    """What the beginning of a file says of its text. Raise `ToolError` for binary data."""
    for mark, codec, note in _MARKS:
        if head.startswith(mark):
            return Coding(codec, mark, note)
    if b"\0" in head[:HEAD]:
        raise ToolError(
            f"`{one_line(path, 200)}` is a binary file ({size:,} bytes); it is not shown. "
            "Use shell with a program that knows the format."
        )
    return Coding()


def decode(path: str, data: bytes) -> tuple[str, Coding]:
    """The text of a whole file, and how to write it again. Raise `ToolError` for binary data."""
    coding = coding_of(path, data[:HEAD], len(data))
    body = data[len(coding.mark) :]
    try:
        return body.decode(coding.codec), coding
    except UnicodeDecodeError as error:
        if coding.codec != "utf-8":
            raise ToolError(
                f"`{one_line(path, 200)}` begins as {coding.codec} and is not (byte {error.start})."
            ) from error
        return _not_quite(body, coding.mark, error.start)


def _not_quite(body: bytes, mark: bytes, at: int) -> tuple[str, Coding]:
    """Text that is not valid UTF-8: Latin-1, or UTF-8 with some damage."""
    said = f"the file is not valid UTF-8 (byte {at + len(mark)})"
    text = body.decode("utf-8", "surrogateescape")
    if mark or _BEYOND.search(text):
        note = f"{said}; bad bytes are shown as \ufffd"
        return text, Coding("utf-8", mark, note, "surrogateescape")
    return body.decode("latin-1"), Coding("latin-1", b"", f"{said}; it is read as Latin-1")


def shown(text: str) -> str:
    """The text with its bad bytes as replacement characters."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
