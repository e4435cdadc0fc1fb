"""Make text safe to show: whatever a model, a tool, a file or a server wrote passes here first.

`clean` keeps line ends and tabs, `expand_tabs` replaces the tabs, `clean_line` returns one line.
"""

from bridle.workspace.text import neutral, one_line

_TAB = 4


def clean(text: str) -> str:
    """Return the text with everything that a terminal would obey written out."""
    return neutral(text.replace("\r\n", "\n") if "\r" in text else text)


def expand_tabs(text: str) -> str:
    """Return the text with tabs replaced by spaces."""
    return text.expandtabs(_TAB) if "\t" in text else text


def clean_line(text: str, limit: int = 200) -> str:
    """Return the text as one line of at most so many characters."""
    return one_line(text, limit)
