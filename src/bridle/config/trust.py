"""Which folders the person trusts: by their real path, and by what their files said at the time.

What lies in a folder is inert until then: rules, hooks and instructions of a repository come from
whoever wrote it. A file that has changed since, or that is new, is not trusted; the others are. The
files of the folder that hooks and the commands of MCP servers name are such files, too.
Files are read inside the folder alone, whatever links they are.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from bridle.errors import ConfigError, ToolError
from bridle.workspace.replacing import replace_file

POLICY = ".bridle/policy.yaml"
HOOKS = ".bridle/hooks.yaml"
SERVERS = ".bridle/mcp.yaml"
DIAGNOSTICS = ".bridle/diagnostics.yaml"
SKILLS = (".bridle/skills", ".claude/skills")
COMMANDS = ".bridle/commands"
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", ".bridle/instructions.md")
FILES = (POLICY, HOOKS, SERVERS, DIAGNOSTICS, *INSTRUCTIONS)
_STARTING = (HOOKS, SERVERS)  # files that name programs
_MOST_SKILLS = 100  # of one folder of skills
_LARGEST = 1_000_000  # bytes; more than that nobody reads before they say yes


class Counting(Struct, frozen=True):
    """A file of a folder that would count: what it says, and whether that is trusted.

    `problem` says why it cannot be read; such a file is never trusted.
    """

    name: str
    data: bytes = b""
    trusted: bool = False
    problem: str = ""


class Trust:
    """What was trusted, in one private file of the state folder. Raise `ConfigError`."""

    def __init__(self, state: str | os.PathLike[str]) -> None:
        self._file = Path(state, "trust.json")

    def is_trusted(self, root: str | os.PathLike[str]) -> bool:
        """Was this folder trusted, with every file that counts as it is now?"""
        granted = self._folders().get(_real(root))
        return granted is not None and all(file.trusted for file in self.files(root))

    def files(self, root: str | os.PathLike[str]) -> tuple[Counting, ...]:
        """The files of the folder that would count, as they are now."""
        granted = self._folders().get(_real(root), {}).get("files", {})
        scripts = (_look_at_script(root, name) for name in _scripts(root))
        names = (*FILES, *skill_files(root), *command_files(root))
        found = (*(_look(root, name) for name in names), *scripts)
        return tuple(
            Counting(one.name, one.data, granted.get(one.name) == _hash(one.data), one.problem)
            if not one.problem
            else one
            for one in found
            if one is not None
        )

    def read(self, root: str | os.PathLike[str], name: str) -> bytes | None:
        """What a file says that is trusted exactly so; None where there is none such."""
        granted = self._folders().get(_real(root), {}).get("files", {})
        if name not in granted:
            return None
        found = _look(root, name)
        if found is None or found.problem or _hash(found.data) != granted[name]:
            return None
        return found.data

    def hooks(self, root: str | os.PathLike[str]) -> bytes | None:
        """What the file of hooks says, where it is trusted with every script that it names."""
        return self._starting(root, HOOKS)

    def servers(self, root: str | os.PathLike[str]) -> bytes | None:
        """What the file of MCP servers says, on the same terms."""
        return self._starting(root, SERVERS)

    def _starting(self, root: str | os.PathLike[str], name: str) -> bytes | None:
        scripts = set(_scripts(root))
        if any(not one.trusted for one in self.files(root) if one.name in scripts):
            return None
        return self.read(root, name)

    def grant(
        self, root: str | os.PathLike[str], shown: tuple[Counting, ...] | None = None
    ) -> None:
        """Trust the folder with the files as they were shown (default: as they are now)."""
        files = self.files(root) if shown is None else shown
        entry = {
            "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "files": {one.name: _hash(one.data) for one in files if not one.problem},
        }
        with self._changing() as folders:
            folders[_real(root)] = entry

    def revoke(self, root: str | os.PathLike[str]) -> bool:
        """Trust it no longer; False where it was not trusted."""
        with self._changing() as folders:
            return folders.pop(_real(root), None) is not None

    def folders(self) -> dict[str, str]:
        """Every folder that was trusted, and when."""
        return {path: entry.get("at", "") for path, entry in self._folders().items()}

    def _folders(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self._file.read_bytes())["folders"]
            sound = isinstance(found, dict) and all(map(_is_sound, found.values()))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"{self._file}: {error.strerror}", hint=_UNREADABLE) from error
        except (ValueError, KeyError, TypeError, RecursionError):
            sound = False
        if not sound:
            raise ConfigError(
                f"{self._file}: this is not what bridle wrote, so no folder can be trusted",
                hint="Delete the file, then trust your folders again.",
            )
        return dict(found)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, Any]]]:
        """The folders, to be changed by one process at a time; written in one step."""
        import fcntl

        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                folders = self._folders()
                yield folders
                said = json.dumps({"format": 1, "folders": folders}, indent=1)
                replace_file(self._file, said.encode())
            finally:
                os.close(lock)
        except OSError as error:
            raise ConfigError(f"{self._file}: {error.strerror}", hint=_UNREADABLE) from error


_UNREADABLE = "Make the state folder yours to read and write, or set BRIDLE_STATE."


def skill_files(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """The SKILL.md of each skill of the folder, by name. None is opened."""
    found = []
    for place in SKILLS:
        folder = Path(root, place)
        try:
            names = sorted(one.name for one in islice(folder.iterdir(), 10 * _MOST_SKILLS))
        except OSError:  # there is none, or it cannot be looked into
            continue
        files = (f"{place}/{name}/SKILL.md" for name in names)
        found += list(islice((one for one in files if _is_there(root, one)), _MOST_SKILLS))
    return tuple(found)


def command_files(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """The Markdown files of the folder's own `/` commands, by name. None is opened."""
    try:
        found = islice(Path(root, COMMANDS).iterdir(), 10 * _MOST_SKILLS)
        names = sorted(one.name for one in found if one.name.endswith(".md"))
    except OSError:  # there are none, or they cannot be looked into
        return ()
    return tuple(f"{COMMANDS}/{name}" for name in names[:_MOST_SKILLS])


def _is_there(root: str | os.PathLike[str], name: str) -> bool:
    return os.path.lexists(Path(root, name))


def _is_sound(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("files"), dict):
        return False
    return all(isinstance(one, str) for one in (entry.get("at"), *entry["files"].values()))


def _real(root: str | os.PathLike[str]) -> str:
    return os.path.realpath(root)


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def _look(root: str | os.PathLike[str], name: str) -> Counting | None:
    """A file as it is now; no link is followed out of the folder."""
    if not os.path.lexists(Path(root, name)):
        return None
    from bridle.workspace.paths import Workspace

    try:
        data = Workspace(_real(root)).read(name, _LARGEST + 1)
    except ToolError as error:
        return Counting(name, problem=error.message)
    if len(data) > _LARGEST:
        return Counting(name, problem=f"{name} is too long to be read before it is trusted")
    return Counting(name, data)


def _scripts(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """The files that those name which name programs, and any beside them: they count as well."""
    there = [one for name in _STARTING if (one := _look(root, name)) and not one.problem]
    folder = Path(root, HOOKS).parent
    if not there:
        return ()
    said = b"\n".join(one.data for one in there)
    try:
        names = sorted(one.name for one in folder.iterdir() if not one.is_dir())
    except OSError as error:
        raise ConfigError(
            f"{folder}: {error.strerror}", hint="Make it a folder that you may read."
        ) from error
    found = {f"{folder.name}/{one}" for one in names if os.fsencode(one) in said}
    found.update(*(_named(root, one) for one in there))
    return tuple(sorted(found - set(FILES)))


def _named(root: str | os.PathLike[str], there: Counting) -> tuple[str, ...]:
    """The files of the folder that hooks, or the commands of servers, name."""
    from bridle.config.mcp import parse_servers
    from bridle.workspace.named import named_files

    said, real = there.data.decode("utf-8", "replace"), _real(root)
    if there.name == HOOKS:
        lines = (one for one in said.splitlines() if not one.lstrip().startswith("#"))
        return named_files(lines, real, real, outright=True)
    try:
        servers = parse_servers(said, Path(root, SERVERS))
    except ConfigError:
        return ()  # whoever uses them says so
    return tuple(
        name
        for one in servers
        for name in named_files(
            (*one.command, *one.env.values()), str(Path(real, Path(one.cwd).expanduser())), real
        )
    )


def _look_at_script(root: str | os.PathLike[str], name: str) -> Counting | None:
    """A script as it is now: one that lies elsewhere by where, and a long one by a number."""
    from bridle.workspace.named import fingerprints, leads_out

    beside = Path(name).parent == Path(SERVERS).parent
    if not beside and (leads_out(name, _real(root)) or _size(root, name) > _LARGEST):
        said = fingerprints((name,), _real(root))[name]
        return Counting(name, f"{_size(root, name)} bytes, {said}".encode())
    return _look(root, name)


def _size(root: str | os.PathLike[str], name: str) -> int:
    try:
        return Path(root, name).stat().st_size
    except OSError:
        return 0
