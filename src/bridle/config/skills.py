"""Skills: folders with a SKILL.md, the person's own and those of a folder that they trust.

The file opens with YAML between two lines of `---`: `name` and `description`; what follows are the
instructions. Whatever else stands there (`allowed-tools`, …) gives nobody anything. One that cannot
be understood is left out with a word on why: a skill is words, and nothing depends on it. Files are
read inside the folder of skills alone, whatever links they are. What is read here is somebody's
text: it is neutralised and bounded before anybody sees it.
"""

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct

from bridle.config.marked import composed, pairs, says_something
from bridle.config.places import skills_folder, state_folder
from bridle.config.trust import SKILLS, Trust, skill_files
from bridle.errors import ConfigError, ToolError
from bridle.workspace.text import neutral, one_line

FILE = "SKILL.md"
MOST = 100  # skills of one place
LARGEST = 256 * 1024  # bytes of a SKILL.md
DESCRIBED = 1024  # characters of a description
_HEAD = 16 * 1024  # bytes that the front matter may take
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.S | re.M)
_HINT = "A SKILL.md begins with `---`, `name: …`, `description: …`, `---`."


class Skill(Struct, frozen=True):
    """A skill that counts. `root` is the folder that its files are read in, `folder` lies in it."""

    name: str
    description: str
    root: str
    folder: str  # from the root
    trusted: str = ""  # the state folder, where SKILL.md has to be what was trusted

    @property
    def file(self) -> str:
        """Its SKILL.md, from the root."""
        return f"{self.folder}/{FILE}"

    def instructions(self) -> str:
        """What it says, as it is now. Raise `ToolError`."""
        data = _read_trusted(self) if self.trusted else _read(self.root, self.file)
        return _parted(data.decode("utf-8", "replace"), self.file)[1]


class StandingSkills(Struct, frozen=True):
    """The skills that count in a folder, and what deserves a word, with a hint."""

    skills: tuple[Skill, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


def standing_skills(root: str | Path, environ: Mapping[str, str] | None = None) -> StandingSkills:
    """The person's own, then those of the folder that are trusted; the first of a name counts."""
    environ = os.environ if environ is None else environ
    found: dict[str, Skill] = {}
    notes: list[tuple[str, str]] = []
    state = str(state_folder(environ))
    for one in (*_own(str(skills_folder(environ))), *_theirs(os.path.realpath(root), state)):
        if isinstance(one, Skill):
            if one.name in found:
                notes.append((f"{one.file}: there is a skill {one.name} before it", ""))
            found.setdefault(one.name, one)
        else:
            notes.append(one)
    return StandingSkills(tuple(found.values()), tuple(notes))


def _own(folder: str) -> Iterator[Skill | tuple[str, str]]:
    try:
        names = sorted(islice(os.listdir(folder), 10 * MOST))  # noqa: PTH208 - names are wanted
    except OSError:
        return
    for name in names[:MOST]:
        if os.path.lexists(f"{folder}/{name}/{FILE}"):
            yield _skill(folder, name, "")


def _theirs(root: str, state: str) -> Iterator[Skill | tuple[str, str]]:
    files = skill_files(root)
    if not files:
        return
    trust, unread = Trust(state), 0
    for file in files:
        if trust.read(root, file) is None:
            unread += 1
        else:
            yield _skill(root, file.removesuffix(f"/{FILE}"), state)
    if unread:
        what = "a skill that is" if unread == 1 else f"{unread} skills that are"
        yield f"this folder has {what} not read until you trust it: bridle trust", ""


def _skill(root: str, folder: str, state: str) -> Skill | tuple[str, str]:
    """The skill, or what is wrong with it and what would be right."""
    shown = one_line(f"{folder}/{FILE}", 200)
    try:
        data = _read(root, f"{folder}/{FILE}")
        front, _ = _parted(data.decode("utf-8"), shown)
        name, said = _described(front, shown)
    except UnicodeDecodeError:
        return f"the skill {shown} is left out: it is not UTF-8 text", _HINT
    except (ConfigError, ToolError) as error:
        return f"the skill {shown} is left out: {error.message}", getattr(error, "hint", "")
    return Skill(name, said, root, folder, state)


def _read(root: str, file: str) -> bytes:
    """The bytes of it; no link is followed out. Raise `ToolError`."""
    from bridle.workspace.paths import Workspace

    data = Workspace(root).read(file, LARGEST + 1)
    if len(data) > LARGEST:
        raise ToolError(f"it has more than {LARGEST // 1024} KB")
    return data


def _read_trusted(skill: Skill) -> bytes:
    data = Trust(skill.trusted).read(skill.root, skill.file)
    if data is None:
        raise ToolError(
            f"{skill.file} has changed since it was trusted, so it is not read. "
            "The person can look at it and accept it with `bridle trust`."
        )
    return data[:LARGEST]


def _parted(text: str, shown: str) -> tuple[str, str]:
    """The front matter, and the instructions. Raise `ToolError`."""
    found = _FRONT.match(text.removeprefix("\ufeff"))
    if found is None or len(found[1]) > _HEAD:
        raise ToolError(f"{shown} does not begin with its name and description between `---`")
    return found[1], neutral(
        text.removeprefix("\ufeff")[found.end() :].replace("\r\n", "\n")
    ).strip()


def _described(front: str, shown: str) -> tuple[str, str]:
    """Name and description. Raise `ConfigError`."""
    path = Path(shown)
    found: dict[str, object] = {}
    if says_something(front):
        with composed("\n" + front, path) as (loader, root):
            for key, node, _ in pairs(root, path, "the head of the file", _HINT):
                if key in ("name", "description"):
                    found[key] = loader.construct_object(node, deep=True)
    name, said = found.get("name"), found.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        hint = "A name has letters, digits, `-`, `_` and `.`, and at most 64 of them."
        raise ConfigError(f"{shown}: it has no `name` that could be used", hint=hint)
    if not isinstance(said, str) or not said.strip():
        hint = "Say what the skill is for, and when it is to be used."
        raise ConfigError(f"{shown}: it has no `description`", hint=hint)
    return name, one_line(said, DESCRIBED)


__all__ = ["FILE", "SKILLS", "Skill", "StandingSkills", "standing_skills"]
