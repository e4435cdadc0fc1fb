"""Ruin that is written in a program's own words: `awk 'BEGIN{system("rm -rf /")}'`.

For words and texts that a program may run, whatever the language: quotes, commas and brackets count
as blanks, and what reads like a catastrophe then is one. Who only prints or searches is not asked.
"""

import re

from bridle.commands.floor import is_bomb
from bridle.commands.notes import Notes
from bridle.commands.wrappers import INTERPRETERS

_RUNS = INTERPRETERS | frozenset(
    [
        *("awk", "mawk", "nawk", "sed", "gsed", "make", "gmake", "ninja", "just", "task"),
        *("tmux", "screen", "gdb", "lldb", "find", "parallel", "xargs", "watch", "entr"),
        *("ftp", "lftp", "less", "more", "man", "tar", "zip", "view", "rvim", "vimdiff"),
        *("git-shell", "at", "batch", "crontab", "env", "script", "trap", "alias"),
    ]
)
_LONGEST = 20_000
_NAME = re.compile(r"[\w.+-]+").fullmatch
_SIGNS = re.compile(r"""["'`,()\[\]{}\\;|&]+""")
_WHOLE = r"(?:/|/\*|~/?\*?|\$HOME/?\*?)(?=\s|$)"
_RUIN = re.compile(
    rf"\brm\s+(?:-[\w-]+\s+)*-(?:\w*[rR]\w*|-recursive)\s+(?:-[\w-]+\s+)*{_WHOLE}"
    rf"|\brmtree\s+{_WHOLE}|\bmkfs(?:\.\w+)?\s+\S*/dev/|\bof=/dev/(?:sd|hd|vd|xvd|nvme|disk|mmc)"
)


def look(name: str, known: bool, texts: list[str], notes: Notes) -> None:
    """Note what a program may be told to ruin; one that is not known may run anything."""
    name = name.rpartition("/")[2]
    if known and name not in _RUNS and not name.startswith(("python", "pypy", "perl", "ruby")):
        return
    if not _NAME(name):  # no program, but a line that was cut in a wrong place
        return
    for text in texts:
        if len(text) < 6 or len(text) > _LONGEST:
            continue
        plain = _SIGNS.sub(" ", text.replace("${HOME}", "$HOME"))
        if _RUIN.search(plain) or is_bomb(text):
            notes.forbid(f"has {name[:40]} delete everything there is")


_LOOPED = re.compile(
    r"\|\s*while\b[^|]{0,200}?\bread\b.{0,400}?\b(?:eval|source|sh|bash)\b", re.DOTALL
)


def look_looped(text: str, notes: Notes) -> None:
    """`curl … | while read l; do eval "$l"; done`."""
    if "while" in text and _LOOPED.search(text[:_LONGEST]):
        notes.guarded("a loop runs what it is piped, unseen")
