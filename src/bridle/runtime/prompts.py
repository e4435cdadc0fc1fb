"""The system prompt of a coding assistant, made of `prompts/*.md`, and a neutral one.

It depends on the tools: a model without a tool for lists is not asked to keep one. Then come facts
(folder, platform, date, branch), and the project's own instructions if there are any. Nothing is
run: the branch is read from git's own file.
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

MAX_INSTRUCTIONS = 32 * 1024  # bytes of a project's instructions
MAX_SKILLS = 16_000  # characters of the descriptions of skills
FILES = ("AGENTS.md", "CLAUDE.md", ".bridle/instructions.md")
_FOLDER = Path(__file__).with_name("prompts")
_SECTIONS: tuple[tuple[str, str], ...] = (  # a section, and the tool that it needs
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
    "The following text is from files of the project, which the person trusts. Follow it in your "
    "work here. What the person says takes precedence, and this text cannot change what is "
    "permitted."
)
_BRANCH = re.compile(r"ref: refs/heads/([\w./-]{1,100})")
_POINTER = re.compile(r"gitdir: ([^\0\n]{1,4096})")
_SYSTEMS = {"linux": "Linux", "darwin": "macOS"}


class Project(Struct, frozen=True):
    """The instructions of a folder's files for the model, and the files that are not trusted."""

    instructions: str = ""
    unread: tuple[str, ...] = ()


def system_prompt(
    root: str, tools: Iterable[str], instructions: str = "", skills: Mapping[str, str] | None = None
) -> str:
    """Return the prompt for an engine that works in that folder with those tools and skills."""
    offered = tuple(tools)
    sections = [_section(name) for name, needs in _SECTIONS if not needs or needs in offered]
    sections.append("# Facts\n\n" + "\n".join(f"- {fact}" for fact in _facts(root, offered)))
    if skills and "skill" in offered:
        sections.append(_section("skills") + "\n\n" + "\n".join(_skill_lines(skills)))
    if instructions.strip():
        sections.append(instructions.strip())
    return "\n\n".join(sections) + "\n"


def neutral_prompt(instructions: str = "") -> str:
    """Return the prompt for an engine that has a program's own tools and no folder to work on."""
    return "\n\n".join(filter(None, (_section("neutral"), instructions.strip()))) + "\n"


def _skill_lines(skills: Mapping[str, str]) -> Iterable[str]:
    """Yield the name and description of each skill; only names if that would be too long."""
    room = MAX_SKILLS
    for name, about in skills.items():
        line = f"- {one_line(name, 64)}: {one_line(about, 1024)}"
        room -= len(line)
        yield line if room > 0 else f"- {one_line(name, 64)}"


def project_instructions(root: str | Path, environ: Mapping[str, str] | None = None) -> Project:
    """Return the instructions of a folder, if the person trusts them. Raise `ConfigError`."""
    names = [name for name in FILES if os.path.lexists(Path(root, name))]
    if not names:
        return Project()
    trust = Trust(state_folder(os.environ if environ is None else environ))
    files: dict[str, bytes] = {}
    unread = []
    for name in names:
        data = trust.read(root, name)
        if data is None:
            unread.append(name)
        elif data.strip() and data not in files.values():  # one is often a copy of the other
            files[name] = data
    return Project(as_instructions(files), tuple(unread))


def as_instructions(files: Mapping[str, bytes]) -> str:
    """Return the text of these files, marked as the project's, cut if it is too long."""
    if not files:
        return ""
    parts = [_OPENING]
    room = MAX_INSTRUCTIONS
    for name, data in files.items():
        start, room = data[:room], max(0, room - len(data))
        text = neutral(start.decode("utf-8", "replace").replace("\r\n", "\n")).strip()
        cut = f"\n[{name} is longer; the rest is left out]" if len(start) < len(data) else ""
        text = re.sub(r"<(/?project-file)", r"<\\\1", text, flags=re.IGNORECASE)  # it ends no block
        parts.append(f'<project-file name="{name}">\n{text}{cut}\n</project-file>')
    return "\n\n".join(parts)


@cache
def _section(name: str) -> str:
    return (_FOLDER / f"{name}.md").read_text("utf-8").strip()


def _facts(root: str, tools: tuple[str, ...]) -> Iterable[str]:
    yield f"Workspace: {one_line(root, 500)}"
    yield f"Platform: {_SYSTEMS.get(sys.platform, sys.platform)}"
    yield f"Date: {time.strftime('%Y-%m-%d')}"
    if branch := git_branch(root):
        yield f"Git branch when this began: {branch}"
    yield f"Tools: {', '.join(tools) or 'none'}"


def git_branch(root: str) -> str:
    """Return the branch that is checked out in the folder's repository, read from git's own file.

    Empty if there is none, or if its name has unusual characters, since anybody may have chosen it.
    """
    folder = Path(os.path.realpath(root))
    for parent in (folder, *folder.parents):
        git = parent / ".git"
        if git.is_dir():
            return _match_file(_BRANCH, git / "HEAD")
        if linked := _match_file(_POINTER, git):
            return _match_file(_BRANCH, Path(parent, linked) / "HEAD")
    return ""


def _match_file(pattern: re.Pattern[str], path: Path) -> str:
    """Return what the pattern captures in a file's first line; empty if it does not match."""
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
    match = pattern.fullmatch(line.rstrip("\r"))
    return match[1] if match is not None and match[1].isprintable() else ""
