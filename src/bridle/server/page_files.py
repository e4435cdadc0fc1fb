"""The page's own files: read once, found by their exact names, nothing else of the disk.

A file whose name carries a hash of its content may be kept for ever; the page itself is asked for
each time, and is not sent again when it is the same.
"""

import gzip
import hashlib
import re
from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).parent / "page"
INDEX = "/"
_HASHED = re.compile(r"[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$")
_MEDIA = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain",
}
_PACKED = (".html", ".js", ".css", ".svg", ".json", ".txt", ".webmanifest")


class PageFile(Struct, frozen=True):
    """A file of the page, ready to be sent."""

    media: str
    plain: bytes
    packed: bytes
    tag: str
    cache: str


class Page:
    """The files there are, by the paths under which they are asked for."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._files = _files(folder)
        self._leaves: dict[str, PageFile] = {}

    def leaf(self, path: str) -> PageFile | None:
        """What is at that path; it is read when it is first asked for."""
        if path not in self._leaves:
            file = self._files.get(path)
            if file is None:
                return None
            self._leaves[path] = _leaf(file)
        return self._leaves[path]


def _files(folder: Path) -> dict[str, Path]:
    found = [file for file in folder.rglob("*") if file.is_file() and file.suffix in _MEDIA]
    paths = {"/" + file.relative_to(folder).as_posix(): file for file in found}
    if "/index.html" in paths:
        paths[INDEX] = paths["/index.html"]
    return paths


def _leaf(file: Path) -> PageFile:
    hashed = bool(_HASHED.search(file.name)) and file.parent.name == "assets"
    return page_file(file.read_bytes(), file.name, for_ever=hashed)


def page_file(plain: bytes, name: str, *, for_ever: bool = False) -> PageFile:
    """A file of that name with this content. Raise `KeyError` for a kind that is not served."""
    suffix = Path(name).suffix.lower()
    packed = gzip.compress(plain, 9, mtime=0) if suffix in _PACKED else b""
    return PageFile(
        media=_MEDIA[suffix],
        plain=plain,
        packed=packed if len(packed) < len(plain) else b"",
        tag='"' + hashlib.sha256(plain).hexdigest()[:24] + '"',
        cache="public, max-age=31536000, immutable" if for_ever else "no-cache",
    )
