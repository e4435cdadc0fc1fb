"""The sink: everything that a model, a tool, a file or a server said passes here before it shows.

Pure. `clean` keeps line ends and tabs; `spaced` makes spaces of the tabs; `clean_line` is one line.
"""

from bridle.workspace.text import neutral, one_line

_TAB = 4


def clean(text: str) -> str:
    """The text as it may be shown: what a terminal would obey is written out."""
    return neutral(text.replace("\r\n", "\n") if "\r" in text else text)


def spaced(text: str) -> str:
    """The same without tabs: a tab is as wide as a terminal pleases."""
    return text.expandtabs(_TAB) if "\t" in text else text


def clean_line(text: str, limit: int = 200) -> str:
    """The text as one line of at most so many characters."""
    return one_line(text, limit)
