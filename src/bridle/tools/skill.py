"""The tool `skill`: the instructions of a skill, and the files of its folder. It only reads.

Which skills there are, and whether they are trusted, is handed in: here is how one is read. No link
is followed out of the folder of a skill, and everything that is given has an end.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from bridle.errors import ToolError
from bridle.policy import Facts, ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose
from bridle.workspace.text import neutral, one_line, shorten, size_of

MOST = 30_000  # characters of instructions, and of a file
_FILES = 100
_DEPTH = 4
_LARGEST = 1 << 20  # bytes of a file that are looked at


class Readable(Protocol):
    """A skill, as far as it is read here. `instructions` raises `ToolError`."""

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
    """Gives what a skill says."""

    name = "skill"
    description = Prose("skill")
    policy = ToolPolicy(read_only=True, risk="low")
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "The skill's name."},
            "file": {"type": "string", "description": "A file of its folder to read instead."},
        },
        "required": ["name"],
        "additionalProperties": False,
    }

    def __init__(self, skills: Iterable[Readable]) -> None:
        self.skills = {one.name: one for one in skills}

    def facts(self, arguments: dict[str, Any]) -> Facts:
        """What a rule is held against: the skill's name."""
        return Facts(self.policy, str(arguments["name"]))

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Read it, in a thread."""
        from bridle.tools.threads import in_thread

        found = self.skills.get(arguments["name"])
        if found is None:
            known = ", ".join(self.skills) or "none"
            said = f"There is no skill {one_line(arguments['name'])!r}. There are: {known}."
            return ToolResult.failure(said)
        if arguments.get("file"):
            return await in_thread(_file, found, arguments["file"])
        return await in_thread(_whole, found)


def _whole(skill: Readable) -> ToolResult:
    text = shorten(skill.instructions(), MOST)
    files = list(_listed(skill))
    said = [f"The skill {skill.name}, in {one_line(_place(skill), 500)}:", text]
    if files:
        said.append("Other files of its folder, which `file` reads:\n" + "\n".join(files))
    return ToolResult.success({"skill": skill.name, "files": len(files)}, text="\n\n".join(said))


def _place(skill: Readable) -> str:
    return f"{skill.root}/{skill.folder}"


def _file(skill: Readable, path: str) -> ToolResult:
    from bridle.workspace.paths import Workspace

    data = Workspace(_place(skill)).read(path, _LARGEST)
    if b"\0" in data:
        raise ToolError(f"`{one_line(path, 200)}` is not text.")
    text = shorten(neutral(data.decode("utf-8", "replace").replace("\r\n", "\n")), MOST)
    return ToolResult.success({"skill": skill.name, "file": path}, text=text)


def _listed(skill: Readable) -> Iterator[str]:
    """The files of its folder but the instructions, each with its size; no link is followed."""
    found = 0
    for path, size in _walk(_place(skill), "", 0):
        if path == "SKILL.md":
            continue
        if found == _FILES:
            yield "[… and more]"
            return
        found += 1
        yield f"- {one_line(path, 300)} ({size_of(size)})"


def _walk(top: str, below: str, depth: int) -> Iterator[tuple[str, int]]:
    try:
        entries = sorted(os.scandir(f"{top}/{below}"), key=lambda one: one.name)
    except OSError:
        return
    for entry in entries[: 2 * _FILES]:
        path = f"{below}{entry.name}"
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # it is gone by now
            continue
        if stat.S_ISREG(status.st_mode):
            yield path, status.st_size
        elif stat.S_ISDIR(status.st_mode) and depth < _DEPTH and not entry.name.startswith("."):
            yield from _walk(top, f"{path}/", depth + 1)
