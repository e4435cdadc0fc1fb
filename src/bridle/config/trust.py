"""Which folders the person trusts, by their real path and the content of their files at that time.

Rules, hooks and instructions of a repository come from whoever wrote it, so they have no effect
until then. A file that has changed since, or that is new, is not trusted; the others are. Files of
the folder that hooks and the commands of MCP servers name have to be trusted as well. No link is
followed out of the folder.
"""

import fcntl
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
from msgspec.structs import replace

from bridle.config.mcp import parse_servers
from bridle.errors import ConfigError, ToolError
from bridle.workspace.fs import replace_file
from bridle.workspace.programs import fingerprints, mentioned_files, outside_target
from bridle.workspace.workspace import Workspace

POLICY = ".bridle/policy.yaml"
HOOKS = ".bridle/hooks.yaml"
SERVERS = ".bridle/mcp.yaml"
DIAGNOSTICS = ".bridle/diagnostics.yaml"
SKILLS = (".bridle/skills", ".claude/skills")
COMMANDS = ".bridle/commands"
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", ".bridle/instructions.md")
FILES = (POLICY, HOOKS, SERVERS, DIAGNOSTICS, *INSTRUCTIONS)
_PROGRAMS = (HOOKS, SERVERS)  # files that name programs
_MOST_SKILLS = 100  # of one folder of skills
_LARGEST = 1_000_000  # bytes; nobody reads more than that before they accept it


class FolderFile(Struct, frozen=True):
    """A file of a folder that has an effect if it is trusted: its content, and whether it is.

    `problem` says why it cannot be read; such a file is never trusted.
    """

    name: str
    data: bytes = b""
    trusted: bool = False
    problem: str = ""


class Trust:
    """The trusted folders, in one private file of the state folder. Raise `ConfigError`."""

    def __init__(self, state: str | os.PathLike[str]) -> None:
        self._file = Path(state, "trust.json")

    def is_trusted(self, root: str | os.PathLike[str]) -> bool:
        """Is this folder trusted, with every file of it as it is now?"""
        granted = self._folders().get(_real_path(root))
        return granted is not None and all(file.trusted for file in self.files(root))

    def files(self, root: str | os.PathLike[str]) -> tuple[FolderFile, ...]:
        """The files of the folder that have an effect if they are trusted, as they are now."""
        granted = self._folders().get(_real_path(root), {}).get("files", {})
        names = (*FILES, *skill_files(root), *command_files(root))
        files = (
            *(_read(root, name) for name in names),
            *(_read_script(root, name) for name in _scripts(root)),
        )
        return tuple(
            file
            if file.problem
            else replace(file, trusted=granted.get(file.name) == _hash(file.data))
            for file in files
            if file is not None
        )

    def read(self, root: str | os.PathLike[str], name: str) -> bytes | None:
        """Read a file; None if it does not exist or is not trusted as it is now.

        A file that names programs is trusted only together with every script that it names.
        """
        granted = self._folders().get(_real_path(root), {}).get("files", {})
        if name not in granted:
            return None
        if name in _PROGRAMS:
            scripts = set(_scripts(root))
            if any(not file.trusted for file in self.files(root) if file.name in scripts):
                return None
        file = _read(root, name)
        if file is None or file.problem or _hash(file.data) != granted[name]:
            return None
        return file.data

    def grant(
        self, root: str | os.PathLike[str], shown: tuple[FolderFile, ...] | None = None
    ) -> None:
        """Trust the folder with the files as they were shown (default: as they are now)."""
        files = self.files(root) if shown is None else shown
        entry = {
            "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "files": {file.name: _hash(file.data) for file in files if not file.problem},
        }
        with self._edit() as folders:
            folders[_real_path(root)] = entry

    def revoke(self, root: str | os.PathLike[str]) -> bool:
        """Stop trusting a folder; False if it was not trusted."""
        with self._edit() as folders:
            return folders.pop(_real_path(root), None) is not None

    def folders(self) -> dict[str, str]:
        """Return every trusted folder, and since when."""
        return {path: entry.get("at", "") for path, entry in self._folders().items()}

    def _folders(self) -> dict[str, dict[str, Any]]:
        try:
            folders = json.loads(self._file.read_bytes())["folders"]
            sound = isinstance(folders, dict) and all(map(_is_valid, folders.values()))
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
        return dict(folders)

    @contextmanager
    def _edit(self) -> Iterator[dict[str, dict[str, Any]]]:
        """Yield the folders to be changed by one process at a time, and write them in one step."""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                folders = self._folders()
                yield folders
                text = json.dumps({"format": 1, "folders": folders}, indent=1)
                replace_file(self._file, text.encode())
            finally:
                os.close(lock)
        except OSError as error:
            raise ConfigError(f"{self._file}: {error.strerror}", hint=_UNREADABLE) from error


_UNREADABLE = "Make the state folder yours to read and write, or set BRIDLE_STATE."


def skill_files(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the SKILL.md of each skill of the folder, by name. None is opened."""
    found: list[str] = []
    for place in SKILLS:
        folder = Path(root, place)
        try:
            names = sorted(path.name for path in islice(folder.iterdir(), 10 * _MOST_SKILLS))
        except OSError:  # there is none, or it cannot be read
            continue
        files = (f"{place}/{name}/SKILL.md" for name in names)
        there = (file for file in files if os.path.lexists(Path(root, file)))
        found += islice(there, _MOST_SKILLS)
    return tuple(found)


def command_files(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the Markdown files of the folder's own `/` commands, by name. None is opened."""
    try:
        paths = islice(Path(root, COMMANDS).iterdir(), 10 * _MOST_SKILLS)
        names = sorted(path.name for path in paths if path.name.endswith(".md"))
    except OSError:  # there is no such folder, or it cannot be read
        return ()
    return tuple(f"{COMMANDS}/{name}" for name in names[:_MOST_SKILLS])


def _is_valid(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("files"), dict):
        return False
    return all(isinstance(text, str) for text in (entry.get("at"), *entry["files"].values()))


def _real_path(root: str | os.PathLike[str]) -> str:
    return os.path.realpath(root)


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def _read(root: str | os.PathLike[str], name: str) -> FolderFile | None:
    """Read a file as it is now. No link is followed out of the folder."""
    if not os.path.lexists(Path(root, name)):
        return None
    try:
        data = Workspace(_real_path(root)).read(name, _LARGEST + 1)
    except ToolError as error:
        return FolderFile(name, problem=error.message)
    if len(data) > _LARGEST:
        return FolderFile(name, problem=f"{name} is too long to be read before it is trusted")
    return FolderFile(name, data)


def _scripts(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """The files that hooks and servers name, in the folder and beside the files that name them."""
    files = [
        file for name in _PROGRAMS if (file := _read(root, name)) is not None and not file.problem
    ]
    if not files:
        return ()
    folder = Path(root, HOOKS).parent
    text = b"\n".join(file.data for file in files)
    try:
        names = sorted(path.name for path in folder.iterdir() if not path.is_dir())
    except OSError as error:
        raise ConfigError(
            f"{folder}: {error.strerror}", hint="Make it a folder that you may read."
        ) from error
    scripts = {f"{folder.name}/{name}" for name in names if os.fsencode(name) in text}
    scripts.update(*(_named_files(root, file) for file in files))
    return tuple(sorted(scripts - set(FILES)))


def _named_files(root: str | os.PathLike[str], file: FolderFile) -> tuple[str, ...]:
    """Return the files of the folder that hooks, or the commands of servers, name."""
    text, real = file.data.decode("utf-8", "replace"), _real_path(root)
    if file.name == HOOKS:
        lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
        return mentioned_files(lines, real, real, exact=True)
    try:
        servers = parse_servers(text, Path(root, SERVERS))
    except ConfigError:
        return ()  # whoever uses the servers reports it
    return tuple(
        name
        for server in servers
        for name in mentioned_files(
            (*server.command, *server.env.values()),
            str(Path(real, Path(server.cwd).expanduser())),
            real,
        )
    )


def _read_script(root: str | os.PathLike[str], name: str) -> FolderFile | None:
    """Read a script as it is now; its fingerprint if it lies elsewhere or is long."""
    is_beside = Path(name).parent == Path(SERVERS).parent
    if not is_beside and (outside_target(name, _real_path(root)) or _size(root, name) > _LARGEST):
        fingerprint = fingerprints((name,), _real_path(root))[name]
        return FolderFile(name, f"{_size(root, name)} bytes, {fingerprint}".encode())
    return _read(root, name)


def _size(root: str | os.PathLike[str], name: str) -> int:
    try:
        return Path(root, name).stat().st_size
    except OSError:
        return 0
