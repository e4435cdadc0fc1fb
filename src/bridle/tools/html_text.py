"""The text of an HTML page without its markup. Pure, and limited in time.

Tags are found here, and not by the library's parser, because that takes quadratic time on pages
made for it. What is not quite HTML becomes text or is left out; nothing is an error.
"""

import re
from collections.abc import Iterator
from html import unescape
from time import thread_time
from typing import NamedTuple
from urllib.parse import urljoin

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_PARAGRAPHS = frozenset((*_HEADINGS, "p", "pre", "blockquote", "table", "ul", "ol", "title"))
_LINES = frozenset(
    (
        *("address", "article", "aside", "br", "caption", "dd", "div", "dl", "dt", "fieldset"),
        *("figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "nav", "section"),
        *("tbody", "tfoot", "thead", "tr"),
    )
)
_PREFIXES = {name: "#" * int(name[1]) + " " for name in _HEADINGS}
_PREFIXES |= {"li": "- ", "td": " | ", "th": " | "}
_HIDDEN = frozenset(("template", "noscript", "svg", "math", "object", "canvas", "head"))
_NOT_HTML = {  # elements whose content is not HTML, with the patterns that end them
    name: re.compile(f"</{name}", re.IGNORECASE)
    for name in ("script", "style", "textarea", "iframe", "xmp")
}
_TAG_NAME = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]{0,20})(?=[\s/>])")
_HREF = re.compile(r"""\shref\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_MAX_ATTRIBUTES = 1000  # characters of a tag that are searched for a link
_MAX_LINK = 500
_SECONDS = 2.0  # of this thread's CPU time, for one page
_TIMEOUT_NOTE = "\n[the rest of the page takes too long to read]"


def html_to_text(html: str, base_url: str = "") -> str:
    """Return the text of a page. Links follow their words, joined with `base_url`."""
    builder = _TextBuilder(base_url)
    until = thread_time() + _SECONDS
    for count, token in enumerate(_tokens(html)):
        builder.add(token)
        if count % 1000 == 999 and thread_time() > until:
            return builder.text() + _TIMEOUT_NOTE
    return builder.text()


class _Token(NamedTuple):
    """A start tag or end tag with its attributes, or text (without a name)."""

    name: str
    text: str
    is_end: bool = False


def _tokens(html: str) -> Iterator[_Token]:
    """Yield the parts of a page, in time proportional to its length."""
    position = 0
    while position < len(html):
        start = html.find("<", position)
        if start < 0:
            start = len(html)
        if start > position:
            yield _Token("", html[position:start])
        position = start
        if html.startswith(("<!", "<?"), position):
            end = "-->" if html.startswith("<!--", position) else ">"
            position = _after(html, end, position)
        elif match := _TAG_NAME.match(html, position):
            position = _after(html, ">", position)
            name, is_end = match[1].lower(), match[0][1] == "/"
            attributes = html[match.end(1) : min(position, match.end(1) + _MAX_ATTRIBUTES)]
            yield _Token(name, attributes, is_end)
            if name in _NOT_HTML and not is_end:
                closing = _NOT_HTML[name].search(html, position)
                position = closing.start() if closing else len(html)
        elif position < len(html):
            yield _Token("", "<")
            position += 1


def _after(html: str, end: str, position: int) -> int:
    """Return the position after the next `end`, or the end of the page."""
    index = html.find(end, position)
    return len(html) if index < 0 else index + len(end)


class _TextBuilder:
    """Collects text, token by token."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._pieces: list[str] = []
        self._links: list[str] = []
        self._hidden_depth = 0  # open elements that hide their text
        self._pre_depth = 0
        self._is_in_title = False
        self._has_title = False

    def add(self, token: _Token) -> None:
        """Take the next token."""
        if not token.name:
            self._add_text(unescape(token.text))
        elif token.name in _NOT_HTML:
            pass
        elif token.is_end:
            self._add_break(token.name)
            self._end(token.name)
        else:
            self._start(token)

    @property
    def _is_hidden(self) -> bool:
        return self._hidden_depth > 0 and not self._is_in_title

    def _start(self, token: _Token) -> None:
        name = token.name
        if name in _HIDDEN and not token.text.endswith("/>"):
            self._hidden_depth += 1
        elif name == "body":
            self._hidden_depth = 0  # a head need not be closed
        elif name == "title" and not self._has_title:
            self._is_in_title = self._has_title = True
        self._add_break(name)
        if name == "pre":
            self._pre_depth += 1
        elif name == "a":
            match = _HREF.search(token.text)
            self._links.append(unescape(match[1].strip("\"'")) if match else "")
        elif not self._is_hidden:
            self._pieces.append(_PREFIXES.get(name, ""))

    def _end(self, name: str) -> None:
        if name in _HIDDEN:
            self._hidden_depth = max(self._hidden_depth - 1, 0)
        elif name == "title":
            self._is_in_title = False
        elif name == "pre":
            self._pre_depth = max(self._pre_depth - 1, 0)
        elif name == "a" and self._links:
            self._add_link(self._links.pop())

    def _add_text(self, text: str) -> None:
        if self._is_hidden or not text:
            return
        if not self._pre_depth:
            before = " " if text[:1].isspace() else ""
            after = " " if text[-1:].isspace() and not text.isspace() else ""
            text = before + " ".join(text.split()) + after
        self._pieces.append(text)

    def _add_break(self, name: str) -> None:
        if self._is_hidden:
            return
        if name in _PARAGRAPHS:
            self._pieces.append("\n\n")
        elif name in _LINES:
            self._pieces.append("\n")

    def _add_link(self, target: str) -> None:
        if self._is_hidden or not target or target.startswith("#") or len(target) > _MAX_LINK:
            return
        try:
            url = urljoin(self._base_url, target.strip())
        except ValueError:
            return
        if url.startswith(("http://", "https://")):
            self._pieces.append(f" <{url}>")

    def text(self) -> str:
        """Return the text without superfluous whitespace."""
        lines: list[str] = []
        for line in "".join(self._pieces).split("\n"):
            if line.strip() not in ("", "-", "|"):
                lines.append(line.rstrip())
            elif lines and lines[-1]:
                lines.append("")
        return "\n".join(lines).strip()
