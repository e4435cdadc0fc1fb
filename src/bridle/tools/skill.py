"""The tool `skill`: the instructions of a skill, and the files of its folder. It only reads.

Whoever makes the tool decides which skills there are and whether they are trusted. No link is
followed out of a skill's folder, and all output is limited.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from bridle.errors import ToolError
from bridle.policy import Facts, ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.thread_pool import in_thread
from bridle.workspace.text import neutral, one_line, shorten, size_of
from bridle.workspace.workspace import Workspace

_MAX_TEXT = 30_000  # characters of the instructions, and of a file
_MAX_FILES = 100  # listed
_MAX_DEPTH = 4  # of the listed files
_MAX_BYTES = 1 << 20  # read from a file


class Skill(Protocol):
    """What this tool needs of a skill. `instructions` raises `ToolError`."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def root(self) -> str: ...
    @property
    def folder(self) -> str: ...
    def instructions(self) -> str: ...


class SkillTool:
    """Reads a skill."""

    name = "skill"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(read_only=True, risk="low")
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "The skill's name."},
            "file": {"type": "string", "description": "A file in its folder to read instead."},
        },
        "required": ["name"],
        "additionalProperties": False,
    }

    def __init__(self, skills: Iterable[Skill]) -> None:
        self.skills = {skill.name: skill for skill in skills}

    def facts(self, arguments: dict[str, Any]) -> Facts:
        """Return what rules are compared with: the skill's name."""
        return Facts(self.policy, str(arguments["name"]))

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Read it, in a thread."""
        skill = self.skills.get(arguments["name"])
        if skill is None:
            known = ", ".join(self.skills) or "none"
            return ToolResult.failure(
                f"There is no skill {one_line(arguments['name'])!r}. There are: {known}."
            )
        if arguments.get("file"):
            return await in_thread(_read_file, skill, arguments["file"])
        return await in_thread(_read_instructions, skill)


def _read_instructions(skill: Skill) -> ToolResult:
    folder = f"{skill.root}/{skill.folder}"
    parts = [f"The skill {skill.name}, in {one_line(folder, 500)}:"]
    parts.append(shorten(skill.instructions(), _MAX_TEXT))
    files = [
        f"- {one_line(path, 300)} ({size_of(size)})"
        for path, size in islice(_files_below(folder), _MAX_FILES + 2)
        if path != "SKILL.md"
    ]
    if len(files) > _MAX_FILES:
        files[_MAX_FILES:] = ["[… and more]"]
    if files:
        parts.append("Other files in its folder, which `file` reads:\n" + "\n".join(files))
    return ToolResult.success({"skill": skill.name, "files": len(files)}, text="\n\n".join(parts))


def _read_file(skill: Skill, path: str) -> ToolResult:
    data = Workspace(f"{skill.root}/{skill.folder}").read(path, _MAX_BYTES)
    if b"\0" in data:
        raise ToolError(f"`{one_line(path, 200)}` is not text.")
    text = shorten(neutral(data.decode("utf-8", "replace").replace("\r\n", "\n")), _MAX_TEXT)
    return ToolResult.success({"skill": skill.name, "file": path}, text=text)


def _files_below(top: str, folder: str = "", depth: int = 0) -> Iterator[tuple[str, int]]:
    """Yield the path and the size of each file; no link is followed."""
    try:
        entries = sorted(os.scandir(f"{top}/{folder}"), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries[: 2 * _MAX_FILES]:
        path = f"{folder}{entry.name}"
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # it is gone
            continue
        if stat.S_ISREG(status.st_mode):
            yield path, status.st_size
        elif stat.S_ISDIR(status.st_mode) and depth < _MAX_DEPTH and not entry.name.startswith("."):
            yield from _files_below(top, f"{path}/", depth + 1)
