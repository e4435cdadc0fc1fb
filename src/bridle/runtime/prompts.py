"""The system prompt of a coding assistant, put together from `prompts/*.md` (S8); a neutral one.

What is said depends on the tools that are offered: nobody is told to keep a list without a tool for
it. Behind it stand facts (folder, platform, date, branch), and the project's own instructions where
they were handed in. Runs nothing: the branch is read from git's own file.
"""

import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from bridle.config.paths import state_folder
from bridle.config.trust import Trust
from bridle.workspace.text import neutral, one_line

MOST = 32 * 1024  # bytes of a project's instructions
MOST_SKILLS = 16_000  # characters that skills are described in
FILES = ("AGENTS.md", "CLAUDE.md", ".bridle/instructions.md")  # trust's own, without its imports
_FOLDER = Path(__file__).with_name("prompts")
_PIECES: tuple[tuple[str, str], ...] = (  # a piece, and the tool without which it is left out
    ("role", ""),
    ("tone", ""),
    ("objectivity", ""),
    ("code", ""),
    ("tools", ""),
    ("todo", "todo_write"),
    ("questions", "ask_user"),
    ("git", "shell"),
    ("errors", ""),
    ("security", ""),
)
_OPENING = (
    "# The project's instructions\n\n"
    "What follows is from files of the project, which the person trusts. Follow it in your work "
    "here. What the person says comes before it, and it changes nothing of what is permitted."
)
_BRANCH = re.compile(r"ref: refs/heads/([\w./-]{1,100})")
_POINTER = re.compile(r"gitdir: ([^\0\n]{1,4096})")
_SYSTEMS = {"linux": "Linux", "darwin": "macOS"}


class Project(Struct, frozen=True):
    """What a folder says to the model: what may be told of it, and the files that are not read."""

    instructions: str = ""
    unread: tuple[str, ...] = ()


def system_prompt(
    root: str, tools: Iterable[str], instructions: str = "", skills: Mapping[str, str] | None = None
) -> str:
    """The whole text for an engine that works in that folder with those tools and skills."""
    offered = tuple(tools)
    said = [_piece(name) for name, needs in _PIECES if not needs or needs in offered]
    said.append("# Facts\n\n" + "\n".join(f"- {fact}" for fact in _facts(root, offered)))
    if skills and "skill" in offered:
        said.append(_piece("skills") + "\n\n" + "\n".join(_listed(skills)))
    if instructions.strip():
        said.append(instructions.strip())
    return "\n\n".join(said) + "\n"


def neutral_prompt(instructions: str = "") -> str:
    """The text for an engine that has tools of a program and no folder to work on."""
    return "\n\n".join(filter(None, (_piece("neutral"), instructions.strip()))) + "\n"


def _listed(skills: Mapping[str, str]) -> Iterable[str]:
    """Each skill by its name and what it is for; names alone where that would be too long."""
    room = MOST_SKILLS
    for name, about in skills.items():
        line = f"- {one_line(name, 64)}: {one_line(about, 1024)}"
        room -= len(line)
        yield line if room > 0 else f"- {one_line(name, 64)}"


def project_instructions(root: str | Path, environ: Mapping[str, str] | None = None) -> Project:
    """What the files of a folder say to the model, where the person trusts them. `ConfigError`."""
    there = [name for name in FILES if os.path.lexists(Path(root, name))]
    if not there:
        return Project()
    trust = Trust(state_folder(os.environ if environ is None else environ))
    found: dict[str, bytes] = {}
    unread = []
    for name in there:
        data = trust.read(root, name)
        if data is None:
            unread.append(name)
        elif data.strip() and data not in found.values():  # one is often a copy of the other
            found[name] = data
    return Project(as_instructions(found), tuple(unread))


def as_instructions(files: Mapping[str, bytes]) -> str:
    """The project's words, marked as such, cut where they are too long together."""
    if not files:
        return ""
    said = [_OPENING]
    room = MOST
    for name, data in files.items():
        kept, room = data[:room], max(0, room - len(data))
        text = neutral(kept.decode("utf-8", "replace").replace("\r\n", "\n")).strip()
        cut = f"\n[{name} is longer; the rest is left out]" if len(kept) < len(data) else ""
        said.append(f'<project-file name="{name}">\n{_fenced(text)}{cut}\n</project-file>')
    return "\n\n".join(said)


def _fenced(text: str) -> str:
    """No line of it can end the block that it stands in."""
    return re.sub(r"<(/?project-file)", r"<\\\1", text, flags=re.IGNORECASE)


@cache
def _piece(name: str) -> str:
    return (_FOLDER / f"{name}.md").read_text("utf-8").strip()


def _facts(root: str, tools: tuple[str, ...]) -> Iterable[str]:
    yield f"Workspace: {one_line(root, 500)}"
    yield f"Platform: {_SYSTEMS.get(sys.platform, sys.platform)}"
    yield f"Date: {time.strftime('%Y-%m-%d')}"
    if branch := git_branch(root):
        yield f"Git branch when this began: {branch}"
    yield f"Tools: {', '.join(tools) or 'none'}"


def git_branch(root: str) -> str:
    """The branch that is checked out in the folder's repository, as its own file says.

    Empty where there is none, or where its name is not a plain one: a name is somebody else's text.
    """
    folder = Path(os.path.realpath(root))
    for one in (folder, *folder.parents):
        mark = one / ".git"
        if mark.is_dir():
            return _named(_BRANCH, mark / "HEAD")
        if found := _named(_POINTER, mark):
            return _named(_BRANCH, Path(one, found) / "HEAD")
    return ""


def _named(pattern: re.Pattern[str], path: Path) -> str:
    """What the first line of a small file says; nothing where it is no such file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        line = os.read(handle, 8192).decode("utf-8", "replace").split("\n", 1)[0]
    except OSError:
        return ""
    finally:
        os.close(handle)
    found = pattern.fullmatch(line.rstrip("\r"))
    return found[1] if found is not None and found[1].isprintable() else ""
