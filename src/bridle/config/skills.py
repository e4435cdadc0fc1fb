"""Skills: folders with a SKILL.md, the person's own and those of a workspace that they trust.

The file opens with YAML between two lines of `---`: `name` and `description`; the instructions
follow. Other keys (`allowed-tools`, …) give no rights. A skill that cannot be understood is left
out with a note: nothing depends on it. No link is followed out of the folder of skills. The text is
somebody else's, so it is neutralised and limited in length before anybody sees it.
"""

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct

from bridle.config.trust import SKILLS, Trust, skill_files
from bridle.config.yaml_file import has_content, items_of, open_yaml
from bridle.errors import ConfigError, ToolError
from bridle.workspace.text import neutral, one_line
from bridle.workspace.workspace import Workspace

FILE = "SKILL.md"
MOST = 100  # skills of one place
LARGEST = 256 * 1024  # bytes of a SKILL.md
DESCRIBED = 1024  # characters of a description
_HEAD = 16 * 1024  # bytes that the front matter may take
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.S | re.M)
_HINT = "A SKILL.md begins with `---`, `name: …`, `description: …`, `---`."

Note = tuple[str, str]  # for the person: what is wrong, and a hint


class Skill(Struct, frozen=True):
    """A skill. Its files are read in `root`; `folder` is a path from there."""

    name: str
    description: str
    root: str
    folder: str
    trusted: str = ""  # the state folder, where SKILL.md has to be what was trusted

    @property
    def file(self) -> str:
        """Its SKILL.md, as a path from the root."""
        return f"{self.folder}/{FILE}"

    def instructions(self) -> str:
        """Read the instructions as they are now. Raise `ToolError`."""
        data = _read_trusted(self) if self.trusted else _read(self.root, self.file)
        return _split(data.decode("utf-8", "replace"), self.file)[1]


def own_skills(folder: str) -> Iterator[Skill | Note]:
    """Yield the skills in the person's own folder; a note for each that cannot be used."""
    try:
        names = sorted(islice(os.listdir(folder), 10 * MOST))  # noqa: PTH208 - names are wanted
    except OSError:
        return
    for name in names[:MOST]:
        if os.path.lexists(f"{folder}/{name}/{FILE}"):
            yield _load(folder, name, "")


def workspace_skills(root: str, state: str) -> Iterator[Skill | Note]:
    """Yield the trusted skills of a workspace; a note for each that cannot be used."""
    if not (files := skill_files(root)):
        return
    trust, untrusted = Trust(state), 0
    for file in files:
        if trust.read(root, file) is None:
            untrusted += 1
        else:
            yield _load(root, file.removesuffix(f"/{FILE}"), state)
    if untrusted:
        what = "a skill that is" if untrusted == 1 else f"{untrusted} skills that are"
        yield f"this folder has {what} not read until you trust it: bridle trust", ""


def _load(root: str, folder: str, state: str) -> Skill | Note:
    """Load a skill, or say why it cannot be used and what to write."""
    shown = one_line(f"{folder}/{FILE}", 200)
    try:
        data = _read(root, f"{folder}/{FILE}")
        front, _ = _split(data.decode("utf-8"), shown)
        name, description = _parse_front(front, shown)
    except UnicodeDecodeError:
        return f"the skill {shown} is left out: it is not UTF-8 text", _HINT
    except (ConfigError, ToolError) as error:
        return f"the skill {shown} is left out: {error.message}", getattr(error, "hint", "")
    return Skill(name=name, description=description, root=root, folder=folder, trusted=state)


def _read(root: str, file: str) -> bytes:
    """Read a file. No link is followed out of the root. Raise `ToolError`."""
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


def _split(text: str, shown: str) -> tuple[str, str]:
    """Split the front matter and the instructions. Raise `ToolError`."""
    text = text.removeprefix("\ufeff")
    front = _FRONT.match(text)
    if front is None or len(front[1]) > _HEAD:
        raise ToolError(f"{shown} does not begin with its name and description between `---`")
    return front[1], neutral(text[front.end() :].replace("\r\n", "\n")).strip()


def _parse_front(front: str, shown: str) -> tuple[str, str]:
    """Return the name and the description. Raise `ConfigError`."""
    path = Path(shown)
    fields: dict[str, object] = {}
    if has_content(front):
        with open_yaml("\n" + front, path) as (loader, root):
            for key, node, _ in items_of(root, path, "the head of the file", _HINT):
                if key in ("name", "description"):
                    fields[key] = loader.construct_object(node, deep=True)
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        hint = "A name has letters, digits, `-`, `_` and `.`, and at most 64 of them."
        raise ConfigError(f"{shown}: it has no `name` that can be used", hint=hint)
    if not isinstance(description, str) or not description.strip():
        hint = "Say what the skill is for, and when it is to be used."
        raise ConfigError(f"{shown}: it has no `description`", hint=hint)
    return name, one_line(description, DESCRIBED)


__all__ = ["FILE", "SKILLS", "Skill", "own_skills", "workspace_skills"]
