"""The tool `grep`: lines that match a regular expression, found by ripgrep or else in Python.

Both search the same files and give the same lines in the same order, `path:line:text`. Files that
hold credentials, and files that a rule protects from being read, are left out unless the call names
them: then the gate has decided about them.

ripgrep opens files by name, and somebody may swap a folder for a link meanwhile. So it only says
where to look; the lines themselves are read through the workspace.
"""

import asyncio
import os
import re
import resource
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.encoding import decode, replace_bad_bytes, split_lines
from bridle.tools.glob import glob_matcher
from bridle.tools.thread_pool import in_thread
from bridle.tools.workspace_files import file_status, workspace_of
from bridle.workspace.fs import READ
from bridle.workspace.ignore import FileTree
from bridle.workspace.process.command import Command, clean_environment
from bridle.workspace.programs import find_program
from bridle.workspace.regex_safety import Unsearchable, bounded_search
from bridle.workspace.safe_open import Location
from bridle.workspace.sensitive_paths import protection_of
from bridle.workspace.text import one_line
from bridle.workspace.workspace import Workspace

_LIMIT = 200  # lines, unless the model asks for another number
_SECONDS = 30.0
_MAX_MATCHES = 20_000  # lines that are sorted; if there are more, which ones is chance
_MAX_LINE = 500  # characters that are shown
_COMPARED = 200  # bytes of a line that have to be what ripgrep said
_MAX_FILE = 20 * 1024 * 1024  # bytes; larger files are not searched
_SIMPLE_NAME = re.compile(r"[\w.*?-]+")  # a glob that means the same to ripgrep
_SHORT_SEARCH = 0.03  # seconds of CPU
_MAX_SHORT_SEARCHES = 1000  # that are remembered
_OPEN_HANDLES = Path("/proc/self/fd")

_Match = tuple[int, str]  # a line number and the line


class Grep:
    """Finds lines in the files of the workspace."""

    name = "grep"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(read_only=True, risk="low", files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "A regular expression."},
            "path": {"type": "string", "description": "A file or folder. Default: all."},
            "glob": {"type": "string", "description": "Only files that match, such as *.py."},
            "ignore_case": {"type": "boolean", "description": "Default: false."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 2000},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }

    def __init__(self, *, ripgrep: bool = True) -> None:
        self._ripgrep = ripgrep

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Search, and stop at the limit."""
        workspace = workspace_of(context.workspace)
        path = workspace.relative(arguments.get("path", "."))
        status = file_status(workspace, path)
        if status is None:
            raise ToolError(f"`{one_line(path, 200)}` does not exist in the workspace.")
        if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
            raise ToolError(f"`{one_line(path, 200)}` is a device, a pipe or a socket, not a file.")
        seconds = _SECONDS
        if context.deadline is not None:
            seconds = min(seconds, context.deadline - asyncio.get_running_loop().time())
        search = _Search(workspace, path, arguments, max(seconds, 0.0), context.hidden)
        program = find_ripgrep(workspace.roots) if self._ripgrep else None
        if program is None:
            await in_thread(search.run_in_python)
        else:
            await search.run_ripgrep(program)
        return search.result()


@cache
def find_ripgrep(roots: tuple[str, ...] = ()) -> str | None:
    """Return ripgrep from the PATH, or from beside the interpreter, where its wheel puts it.

    One in a root is never used: a search needs no approval, and whoever can write there could
    choose what runs.
    """
    return find_program("rg", roots, (str(Path(sys.executable).with_name("rg")),))


class _Search:
    """One search: its arguments, and the matches so far."""

    def __init__(
        self,
        workspace: Workspace,
        path: str,
        arguments: dict[str, Any],
        seconds: float,
        is_hidden: Callable[[str], bool] | None,
    ) -> None:
        self._workspace = workspace
        self._path = path
        self._pattern: str = arguments["pattern"]
        self._glob: str = arguments.get("glob", "")
        self._glob_matches = glob_matcher(self._glob) if self._glob else None
        self._ignore_case: bool = arguments.get("ignore_case", False)
        self._limit = int(arguments.get("limit", _LIMIT))
        self._seconds = seconds
        self._is_hidden = is_hidden
        self._names_credentials = bool(protection_of(path).reading)
        self._matches: dict[str, list[_Match]] = {}  # by file, in order
        self._notes: list[str] = []

    def result(self) -> ToolResult:
        """Return the matches as a result."""
        notes = list(self._notes)
        lines: list[str] = []
        files = 0
        for path, matches in self._matches.items():
            if len(lines) >= self._limit:
                break
            name = one_line(path, 1000)
            shown = matches[: self._limit - len(lines)]
            lines += [f"{name}:{number}:{_shorten_line(line)}" for number, line in shown]
            files += 1
        if sum(map(len, self._matches.values())) > self._limit:
            notes.append(f"only the first {self._limit}; narrow the search, or raise `limit`")
        data = {"matches": len(lines), "files": files, "notes": notes}
        shown_lines = lines or [f"No line matches `{one_line(self._pattern)}`."]
        text = "\n".join(shown_lines + [f"[{note}]" for note in notes])
        return ToolResult.success(data, text=text)

    def _is_searched(self, path: str) -> bool:
        if self._glob_matches is not None and not self._glob_matches(path):
            return False
        if self._is_hidden is not None and path != self._path and self._is_hidden(path):
            return False
        # Not even mentioned: that a pattern matches would reveal what is in the file.
        return self._names_credentials or not protection_of(path).reading

    def _note_timeout(self) -> None:
        self._notes.append(f"stopped after {self._seconds:g} s; narrow the search")

    # --- ripgrep ---

    async def run_ripgrep(self, program: str) -> None:
        """Let ripgrep search, in as many files at once as it likes."""
        with _open_for_program(self._workspace, self._path) as (cwd, target, handles):
            output = _RipgrepOutput(
                prefix=f"{self._path}/" if target == "." and self._path != "." else "",
                only_file="" if self._workspace.is_folder(self._path) else self._path,
                is_searched=self._is_searched,
            )
            place = f"{self._workspace.root}/{self._path}"
            threads = ["--threads=1"] if place in _short_searches else []
            argv = [program, *self._flags(), *threads, "-e", self._pattern, "--", target]
            command = Command(argv, cwd, output.add, handles=handles, starts_nothing=True)
            before = _children_cpu_time()
            ended = await command.run(self._seconds, clean_environment())
            if ended.code is not None:
                _remember_cpu_time(place, _children_cpu_time() - before)
        if ended.timed_out:
            self._note_timeout()
        if output.is_full:
            self._notes.append(
                f"over {_MAX_MATCHES:,} lines match; these may not be the first of them"
            )
        if ended.code == 2 and not output.files and output.messages:
            message = b"\n".join(output.messages).decode(errors="replace")
            raise ToolError(f"The search cannot be made: {message.removeprefix('rg: ')}")
        if output.files:
            await in_thread(self._read_matches, output)

    def _flags(self) -> list[str]:
        format_flags = "--no-config --no-messages --no-heading --with-filename --line-number --null"
        file_flags = (
            "--hidden --no-require-git --no-ignore-global --no-ignore-exclude --no-ignore-dot"
        )
        flags = [*format_flags.split(), *file_flags.split(), "--color=never"]
        flags += [f"--max-count={self._limit + 1}", "--max-filesize=20M"]
        flags += [f"--max-columns={_MAX_LINE * 4}", "--max-columns-preview"]
        if self._ignore_case:
            flags.append("--ignore-case")
        name = self._glob.rpartition("/")[2]
        if _SIMPLE_NAME.fullmatch(name) and name != "**":
            # A type, not --glob, which would include ignored files.
            flags += [f"--type-add=wanted:{name}", "--type=wanted"]
        return [*flags, "--glob=!.git"]

    def _read_matches(self, output: "_RipgrepOutput") -> None:
        """Read the lines that ripgrep named, in order, from the files themselves."""
        count = 0
        with _FolderReader(self._workspace, self._path) as reader:
            for path in sorted(output.files, key=_sort_key):
                with suppress(ToolError):  # it is gone
                    data = reader.read(path, _MAX_FILE + 1)
                    if matches := _confirmed_matches(data, output.files[path]):
                        self._matches[path] = matches
                        count += len(matches)
                if count > self._limit:
                    return

    # --- Python ---

    def run_in_python(self) -> None:
        """Search every line of every file, until the limit or the time is reached."""
        until = time.monotonic() + self._seconds
        try:
            is_match = bounded_search(self._pattern, ignore_case=self._ignore_case)
        except ValueError as error:
            raise ToolError(f"The pattern cannot be used: {error}.") from error
        count = 0
        for file in filter(self._is_searched, self._files()):
            if time.monotonic() > until:
                self._note_timeout()
                return
            for number, line in enumerate(self._read_lines(file), 1):
                try:
                    matches = is_match(line)
                except Unsearchable:
                    self._notes.append(f"{one_line(file)}:{number} is too long to be searched")
                    break
                if matches:
                    self._matches.setdefault(file, []).append((number, line))
                    count += 1
                if count > self._limit:
                    return

    def _files(self) -> Iterator[str]:
        if not self._workspace.is_folder(self._path):
            yield self._path
            return
        tree = FileTree(self._workspace, self._path)
        yield from tree
        if tree.stopped:
            self._notes.append(tree.stopped)

    def _read_lines(self, file: str) -> list[str]:
        """Return the lines of a file; none if it is binary, too large or gone."""
        try:
            data = self._workspace.read(file, _MAX_FILE + 1)
            if len(data) > _MAX_FILE:
                return []
            return split_lines(replace_bad_bytes(decode(file, data)[0]))
        except ToolError:
            return []


# Folders where the last search took little work: there, one thread finishes before several have
# started. If that is wrong the next time, it costs some milliseconds once.
_short_searches: set[str] = set()


def _remember_cpu_time(place: str, seconds: float) -> None:
    _short_searches.discard(place)
    if seconds < _SHORT_SEARCH and len(_short_searches) < _MAX_SHORT_SEARCHES:
        _short_searches.add(place)


def _children_cpu_time() -> float:
    """Return the seconds of CPU of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def _open_for_program(
    workspace: Workspace, path: str
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Open a file or a folder for a program: where to start it, what to name, what to pass on.

    The program gets what was opened here, so that nothing can be swapped for it meanwhile.
    """
    with workspace.open_path(path) as location:
        status = location.status
        is_folder = status is not None and stat.S_ISDIR(status.st_mode)
        handle = location.open_folder() if is_folder else location.open_file()
        try:
            if not _OPEN_HANDLES.is_dir():  # a system other than Linux
                yield workspace.root, workspace.relative(path), ()
            elif is_folder:
                yield f"{_OPEN_HANDLES}/{handle}", ".", ()
            else:
                yield workspace.root, f"{_OPEN_HANDLES}/{handle}", (handle,)
        finally:
            os.close(handle)


class _RipgrepOutput:
    """The matches that ripgrep reports, by file; anything else that it says is in `messages`.

    Whether a file is searched is decided when it is first named. Lines are parsed at the end: there
    may be many more than are shown.
    """

    def __init__(self, *, prefix: str, only_file: str, is_searched: Callable[[str], bool]) -> None:
        self._prefix = prefix
        self._only_file = only_file
        self._is_searched = is_searched
        self._rest = b""
        self._by_name: dict[bytes, list[bytes] | None] = {}
        self._count = 0
        self.files: dict[str, list[bytes]] = {}
        self.messages: list[bytes] = []

    def add(self, data: bytes) -> bool:
        """Take more output. Return False if it is enough."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, separator, match = line.partition(b"\0")
            if not separator:
                self.messages = [*self.messages, line][:20]
                continue
            if name not in self._by_name:
                path = self._only_file or self._prefix + os.fsdecode(name).removeprefix("./")
                is_searched = self._is_searched(path)
                self._by_name[name] = self.files.setdefault(path, []) if is_searched else None
            if (matches := self._by_name[name]) is not None:
                matches.append(match)
                self._count += 1
        return not self.is_full

    @property
    def is_full(self) -> bool:
        return self._count >= _MAX_MATCHES


def _confirmed_matches(data: bytes, reported: list[bytes]) -> list[_Match]:
    """Return the lines that ripgrep reported, if the file has them, as the file has them."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # ripgrep reads UTF-16, too
        data = data.decode("utf-16", "replace").encode()
    numbered: list[tuple[int, bytes]] = []
    for report in reported:
        digits, _, text = report.partition(b":")
        numbered.append((int(digits) if digits.isdigit() else 0, text))
    last = max(number for number, _ in numbered)
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n", last)  # the rest is one piece
    matches: list[_Match] = []
    for number, text in numbered:
        if 0 < number <= len(lines) and lines[number - 1][:_COMPARED] == text[:_COMPARED]:
            line = lines[number - 1]
            try:
                matches.append((number, line.decode()))
            except UnicodeDecodeError:
                matches.append((number, line.decode("latin-1")))
    return matches


def _sort_key(path: str) -> list[tuple[bool, str]]:
    """Sort the files of a folder before its folders, both by name."""
    *folders, name = path.split("/")
    return [*((True, folder) for folder in folders), (False, name)]


def _shorten_line(line: str) -> str:
    line = line.rstrip("\r\n")
    return line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]} [… long line]"


class _FolderReader:
    """Reads many files below a folder in order; each folder on the way is entered only once.

    What is not a regular file with one name in regular folders is read by the workspace.
    """

    def __init__(self, workspace: Workspace, top: str) -> None:
        self._workspace = workspace
        self._top = top
        self._prefix = "" if top == "." else f"{top}/"
        self._location: Location | None = None

    def __enter__(self) -> "_FolderReader":
        if self._workspace.is_folder(self._top):
            with self._workspace.open_path(self._top) as top:
                self._location = Location(0, top.open_folder())
        return self

    def __exit__(self, *error: object) -> None:
        if self._location is not None:
            self._location.close()

    def read(self, path: str, limit: int) -> bytes:
        """Return up to `limit` bytes of a file. Raise `ToolError` if it cannot be read."""
        *folders, name = path.removeprefix(self._prefix).split("/")
        if self._location is None or ".." in folders or not path.startswith(self._prefix):
            return self._workspace.read(path, limit)
        try:
            handle = os.open(name, READ, dir_fd=self._enter(self._location, folders))
        except OSError:
            return self._workspace.read(path, limit)
        try:
            status = os.fstat(handle)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size < limit:
                return os.read(handle, status.st_size)
        finally:
            os.close(handle)
        return self._workspace.read(path, limit)

    def _enter(self, location: Location, folders: list[str]) -> int:
        """Go to a folder and return its handle. Raise `OSError` if a link leads there."""
        while location.names != folders[: len(location.names)]:
            location.leave()
        for name in folders[len(location.names) :]:
            location.enter(name)
        return location.folder
