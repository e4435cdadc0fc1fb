"""Ruin that is written in a program's own words: `awk 'BEGIN{system("rm -rf /")}'`.

For words and texts that a program may run, whatever the language: quotes, commas and brackets count
as blanks, and what reads like a catastrophe then is one. Who only prints or searches is not asked.
"""

import re

from bridle.commands.floor import is_bomb
from bridle.commands.notes import Notes
from bridle.commands.wrappers import INTERPRETERS
from bridle.policy import Act

_RUNS = INTERPRETERS | frozenset(
    [
        *("awk", "mawk", "nawk", "sed", "gsed", "make", "gmake", "ninja", "just", "task"),
        *("tmux", "screen", "gdb", "lldb", "find", "parallel", "xargs", "watch", "entr"),
        *("ftp", "lftp", "less", "more", "man", "tar", "zip", "view", "rvim", "vimdiff"),
        *("cargo", "rsync", "ssh", "ed", "ex", "vi", "vim", "nvim", "emacs", "flock", "docker"),
        *("podman", "kubectl", "nsenter", "unshare", "chroot", "su", "sudo", "doas", "rg", "sort"),
        *("git-shell", "at", "batch", "crontab", "env", "script", "trap", "alias"),
    ]
)
_LONGEST = 20_000
_TAILS = 40  # words of a text that may be the beginning of a command
_NAME = re.compile(r"[\w.+ -]+").fullmatch
_SIGNS = re.compile(r"""["'`,()\[\]{}\\;|&]+""")
_WHOLE = r"(?:/|/\*|~/?\*?|\$HOME/?\*?)(?=\s|$)"
_RUIN = re.compile(
    rf"\brm\s+(?:-[\w-]+\s+)*-(?:\w*[rR]\w*|-recursive)\s+(?:-[\w-]+\s+)*{_WHOLE}"
    rf"|\brmtree\s+{_WHOLE}|\bmkfs(?:\.\w+)?\s+\S*/dev/|\bof=/dev/(?:sd|hd|vd|xvd|nvme|disk|mmc)"
)
_HINT = re.compile(r"rm|mkfs|of=/dev/|\{").search  # in whatever is ruin, and in little else


def may_run(name: str, known: bool) -> bool:
    """May the program run what its words say? One that is not known may run anything."""
    name = name.rpartition("/")[2]
    return not known or name in _RUNS or name.startswith(("python", "pypy", "perl", "ruby"))


def look(name: str, known: bool, texts: list[str], notes: Notes, home: str = "~") -> None:
    """Note what a program may be told to ruin."""
    name = name.rpartition("/")[2]
    if not texts or not may_run(name, known):
        return
    if not _NAME(name):  # no program, but a line that was cut in a wrong place
        return
    together = " ".join("~" if text in (home, f"{home}/") else text for text in texts)
    for text in (*texts, together):
        if len(text) < 6 or len(text) > _LONGEST or not _HINT(text):
            continue
        plain = _SIGNS.sub(" ", text.replace("${HOME}", "$HOME"))
        if _RUIN.search(plain) or is_bomb(text):
            notes.forbid(f"{name[:40]} may do what its words say: delete everything there is")


def tails(text: str) -> tuple[str, ...]:
    """What may be a command somewhere in a text, from each of its words on: for rules that forbid.

    Quotes and signs count as blanks, so that a command inside another's words is seen.
    """
    words = _SIGNS.sub(" ", text[:_LONGEST].replace("${IFS}", " ").replace("$IFS", " ")).split()
    return tuple(
        " ".join([_program(words[at]), *words[at + 1 : at + _TAILS]])
        for at in range(min(len(words), _TAILS))
    )


def _program(word: str) -> str:
    """The name in `+!curl`, `exec=curl` and `/bin/curl`."""
    return (word.rpartition("=")[2] or word).rpartition("/")[2].lstrip("+!@:-") or word


def look_whole(command: str, notes: Notes) -> None:
    """A line that may run what its words say, in whichever of its commands they stand.

    What may be a command in it can then be forbidden by a rule.
    """
    if notes.floor if notes.opaque else all(map(_is_plain, notes.acts)):
        return
    look("the line", False, [command], notes)
    notes.act(Act(("shell",), command, "reads", also=tails(command), minor=True))


_PLAIN = frozenset(
    [
        *("git", "gh", "hg", "echo", "printf", "mkdir", "touch", "cp", "mv", "ln", "chmod", "rm"),
        *("rmdir", "tee", "cd"),
    ]
)


def _is_plain(act: Act) -> bool:
    """Is it harmless, or a known program that runs nothing of what it is told?"""
    if act.is_path or act.does in ("reads", "edits"):
        return True
    words = act.subject.split(" ")
    return words[0] in _PLAIN and "-c" not in words


_LOOPED = re.compile(
    r"\|\s*while\b[^|]{0,200}?\bread\b.{0,400}?\b(?:eval|source|sh|bash)\b", re.DOTALL
)


def look_looped(text: str, notes: Notes) -> None:
    """`curl … | while read l; do eval "$l"; done`."""
    if "while" in text and _LOOPED.search(text[:_LONGEST]):
        notes.guarded("a loop runs what it is piped, unseen")
