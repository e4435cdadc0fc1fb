"""What a page says, in plain words: HTML without its markup. Pure, and bounded in time.

The marks are found here, and not by the library's own parser, because that takes quadratic time on
pages made for it. What is not quite HTML becomes text, or is left out; nothing is ever an error.
"""

import re
from collections.abc import Iterator
from html import unescape
from time import thread_time
from typing import NamedTuple
from urllib.parse import urljoin

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_HIDDEN = frozenset(("template", "noscript", "svg", "math", "object", "canvas", "head"))
_RAW = {  # what stands in these is not HTML
    name: re.compile(f"</{name}", re.IGNORECASE)
    for name in ("script", "style", "textarea", "iframe", "xmp")
}
_PARAGRAPHS = frozenset((*_HEADINGS, "p", "pre", "blockquote", "table", "ul", "ol", "title"))
_LINES = frozenset(
    (
        *("address", "article", "aside", "br", "caption", "dd", "div", "dl", "dt", "fieldset"),
        *("figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "nav", "section"),
        *("tbody", "tfoot", "thead", "tr"),
    )
)
_NAME = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]{0,20})(?=[\s/>])")
_HREF = re.compile(r"""\shref\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_LONGEST_MARK = 1000  # characters of a mark in which a link is looked for
_LONGEST_LINK = 500
_SECONDS = 2.0  # of our own time for one page
_TOO_LONG = "\n[the rest of the page takes too long to read]"


class Mark(NamedTuple):
    """A piece of a page: a mark that begins or ends, or words (no name)."""

    name: str
    text: str
    ends: bool = False


def text_of(html: str, address: str = "") -> str:
    """The words of a page. Links stand behind their words; `address` is what they count from."""
    reader = _Reader(address)
    until = thread_time() + _SECONDS
    for count, mark in enumerate(marks(html)):
        reader.take(mark)
        if count % 1000 == 999 and thread_time() > until:
            return reader.text() + _TOO_LONG
    return reader.text()


def marks(html: str) -> Iterator[Mark]:
    """The pieces of a page, in order, in time proportional to its length."""
    at = 0
    while at < len(html):
        begins = html.find("<", at)
        if begins < 0:
            begins = len(html)
        if begins > at:
            yield Mark("", html[at:begins])
        at = begins
        if html.startswith(("<!", "<?"), at):
            at = _after(html, "-->" if html.startswith("<!--", at) else ">", at)
        elif found := _NAME.match(html, at):
            at = _after(html, ">", at)
            name = found[1].lower()
            ends = found[0][1] == "/"
            yield Mark(name, html[found.end(1) : min(at, found.end(1) + _LONGEST_MARK)], ends)
            if name in _RAW and not ends:
                closing = _RAW[name].search(html, at)
                at = closing.start() if closing else len(html)
        elif at < len(html):
            yield Mark("", "<")
            at += 1


def _after(html: str, end: str, at: int) -> int:
    """The place after the next such end; where there is none, nothing more is read."""
    found = html.find(end, at)
    return len(html) if found < 0 else found + len(end)


class _Reader:
    """Gathers words as they come."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._pieces: list[str] = []
        self._links: list[str] = []
        self._hidden = 0  # marks that are open and hide their words
        self._verbatim = 0
        self._in_title = False
        self._has_title = False

    def take(self, mark: Mark) -> None:
        """The next piece."""
        if not mark.name:
            self._say(unescape(mark.text))
        elif mark.name in _RAW:
            pass
        elif mark.ends:
            self._break(mark.name)
            self._end(mark.name)
        else:
            self._begin(mark)

    @property
    def _is_quiet(self) -> bool:
        return self._hidden > 0 and not self._in_title

    def _begin(self, mark: Mark) -> None:
        name = mark.name
        if name in _HIDDEN and not mark.text.endswith("/>"):
            self._hidden += 1
        elif name == "body":
            self._hidden = 0  # a head need not be closed
        elif name == "title" and not self._has_title:
            self._in_title = self._has_title = True
        self._break(name)
        if name == "pre":
            self._verbatim += 1
        elif name == "a":
            found = _HREF.search(mark.text)
            self._links.append(unescape(found[1].strip("\"'")) if found else "")
        elif not self._is_quiet:
            self._pieces.append(_before(name))

    def _end(self, name: str) -> None:
        if name in _HIDDEN:
            self._hidden = max(self._hidden - 1, 0)
        elif name == "title":
            self._in_title = False
        elif name == "pre":
            self._verbatim = max(self._verbatim - 1, 0)
        elif name == "a" and self._links:
            self._link(self._links.pop())

    def _say(self, words: str) -> None:
        if self._is_quiet or not words:
            return
        if not self._verbatim:
            before = " " if words[:1].isspace() else ""
            after = " " if words[-1:].isspace() and not words.isspace() else ""
            words = before + " ".join(words.split()) + after
        self._pieces.append(words)

    def _break(self, name: str) -> None:
        if self._is_quiet:
            return
        if name in _PARAGRAPHS:
            self._pieces.append("\n\n")
        elif name in _LINES:
            self._pieces.append("\n")

    def _link(self, target: str) -> None:
        if self._is_quiet or not target or target.startswith("#") or len(target) > _LONGEST_LINK:
            return
        try:
            whole = urljoin(self._address, target.strip())
        except ValueError:
            return
        if whole.startswith(("http://", "https://")):
            self._pieces.append(f" <{whole}>")

    def text(self) -> str:
        """All of it, without blanks that mean nothing."""
        kept: list[str] = []
        for line in "".join(self._pieces).split("\n"):
            bare = line.strip()
            if bare not in ("", "-", "|"):
                kept.append(line.rstrip())
            elif kept and kept[-1]:
                kept.append("")
        return "\n".join(kept).strip()


def _before(name: str) -> str:
    """What stands before the words of such a mark."""
    if name in _HEADINGS:
        return "#" * int(name[1]) + " "
    return {"li": "- ", "td": " | ", "th": " | "}.get(name, "")
