"""How the tool `grep` searches: with ripgrep where there is one, else in Python.

Both look at the same files and give the same lines in the same order, `path:line:text`. Files that
hold credentials, and those that a rule keeps from being read, are left out, unless it is them that
were asked for: then the gate has spoken.
ripgrep opens files by their names, and somebody may swap a folder for a link meanwhile; so it only
says where to look, and the lines themselves are read here, by the workspace's own handles.
"""

import asyncio
import os
import re
import resource
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from bridle.errors import ToolError
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.encoding import decode, shown
from bridle.tools.glob import matcher
from bridle.tools.nearby import split_lines
from bridle.tools.opening import InTurn, on_disk, pinned, status
from bridle.tools.threads import in_thread
from bridle.workspace.paths import Workspace
from bridle.workspace.patterns import Unsearchable, bounded_search
from bridle.workspace.process.command import Command
from bridle.workspace.process.environment import clean_environment
from bridle.workspace.protected import care_of
from bridle.workspace.text import one_line
from bridle.workspace.tree import Tree

MOST = 200  # lines, when the model names no limit
SECONDS = 30.0
GATHERED = 20_000  # lines that are put in order; beyond that, which come first is chance
_COLUMNS = 500
_SURE = 200  # bytes of a line that have to be what ripgrep said
_FILE = 20 * 1024 * 1024  # bytes; larger files are not searched
_BRIEF = 0.03  # seconds of CPU
_PLACES = 1000
Hit = tuple[int, str]  # the number of a line, and its text
_PLAIN = re.compile(r"[\w.*?-]+")  # a name's pattern that means the same to ripgrep


async def search(
    arguments: dict[str, Any], context: ToolContext[Any], program: str | None
) -> ToolResult:
    """Search with that program, or without one, and stop at the limit."""
    workspace = on_disk(context.workspace)
    path = workspace.relative(arguments.get("path", "."))
    _refuse_odd(workspace, path)
    seconds = SECONDS
    if context.deadline is not None:
        seconds = min(seconds, context.deadline - asyncio.get_running_loop().time())
    found = _Search(workspace, path, arguments, max(seconds, 0.0))
    found.hidden = context.hidden
    if program is None:
        await in_thread(found.in_python)
    else:
        await found.with_ripgrep(program)
    return found.result()


def _refuse_odd(workspace: Workspace, path: str) -> None:
    """Nothing can be searched but a file or a folder: a pipe would be waited for."""
    found = status(workspace, path)
    if found is None:
        raise ToolError(f"`{one_line(path, 200)}` does not exist in the workspace.")
    if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
        raise ToolError(f"`{one_line(path, 200)}` is a device, a pipe or a socket, not a file.")


class _Search:
    """One search: what is asked, and what has been found."""

    def __init__(
        self, workspace: Workspace, path: str, arguments: dict[str, Any], seconds: float
    ) -> None:
        self._workspace = workspace
        self._path = path
        self._pattern: str = arguments["pattern"]
        self._glob: str = arguments.get("glob", "")
        self._wanted = matcher(self._glob) if self._glob else None
        self._ignore_case: bool = arguments.get("ignore_case", False)
        self._limit = int(arguments.get("limit", MOST))
        self._seconds = seconds
        self._opens_secrets = bool(care_of(path).reading)
        self.hidden: Callable[[str], bool] | None = None  # what a rule keeps from being read
        self._hits: dict[str, list[Hit]] = {}  # by file, in order
        self._notes: list[str] = []

    def result(self) -> ToolResult:
        """What was found, for the model and for the faces."""
        notes = list(self._notes)
        lines: list[str] = []
        files = 0
        for path, hits in self._hits.items():
            if len(lines) >= self._limit:
                break
            lines += _shown(path, hits[: self._limit - len(lines)])
            files += 1
        if sum(map(len, self._hits.values())) > self._limit:
            notes.append(f"only the first {self._limit}; narrow the search, or raise `limit`")
        data = {"matches": len(lines), "files": files, "notes": notes}
        said = lines or [f"No line fits `{one_line(self._pattern)}`."]
        return ToolResult.success(data, text="\n".join(said + [f"[{note}]" for note in notes]))

    def _wants(self, path: str) -> bool:
        """Is this file to be searched?"""
        if self._wanted is not None and not self._wanted(path):
            return False
        if self.hidden is not None and path != self._path and self.hidden(path):
            return False
        # Nothing is said of such a file: that a pattern fits it says what is in it.
        return self._opens_secrets or not care_of(path).reading

    def _too_long(self) -> None:
        self._notes.append(f"stopped after {self._seconds:g} s; narrow the search")

    # --- ripgrep ---

    async def with_ripgrep(self, program: str) -> None:
        """Let ripgrep search, as many files at once as it likes."""
        with pinned(self._workspace, self._path) as (place, target, handles):
            only = "" if self._workspace.is_folder(self._path) else self._path
            heard = _Heard(self._path if target == "." else "", only, self._wants)
            where = f"{self._workspace.root}/{self._path}"
            flags = [*self._flags(), *_brief.flags(where)]
            argv = [program, *flags, "-e", self._pattern, "--", target]
            search = Command(argv, place, heard.take, handles=handles, starts_nothing=True)
            before = _spent()
            ended = await search.run(self._seconds, clean_environment())
            if ended.code is not None:
                _brief.note(where, _spent() - before)
        if ended.timed_out:
            self._too_long()
        if heard.is_full:
            said = f"over {GATHERED:,} lines fit; these need not be the first of them"
            self._notes.append(said)
        if ended.code == 2 and not heard.files and heard.strange:
            why = b"\n".join(heard.strange).decode(errors="replace")
            raise ToolError(f"The search cannot be made: {why.removeprefix('rg: ')}")
        if heard.files:
            await in_thread(self._look_up, heard)

    def _look_up(self, heard: "_Heard") -> None:
        """The lines that ripgrep named, in order, as they stand in the files themselves."""
        count = 0
        with InTurn(self._workspace, self._path) as files:
            for path in sorted(heard.files, key=_order):
                with suppress(ToolError):  # it is gone
                    if hits := _confirmed(files.read(path, _FILE + 1), heard.files[path]):
                        self._hits[path] = hits
                        count += len(hits)
                if count > self._limit:
                    return

    def _flags(self) -> list[str]:
        flags = "--no-config --no-messages --no-heading --with-filename --line-number --null"
        files = "--hidden --no-require-git --no-ignore-global --no-ignore-exclude --no-ignore-dot"
        found = [*flags.split(), *files.split(), "--color=never", f"--max-count={self._limit + 1}"]
        found += [f"--max-columns={_COLUMNS * 4}", "--max-columns-preview", "--max-filesize=20M"]
        if self._ignore_case:
            found.append("--ignore-case")
        name = self._glob.rpartition("/")[2]
        if _PLAIN.fullmatch(name) and name != "**":
            # A type, not --glob: that would bring back files that are ignored.
            found += [f"--type-add=wanted:{name}", "--type=wanted"]
        return [*found, "--glob=!.git"]

    # --- Python ---

    def in_python(self) -> None:
        """Read every file and search every line, until the limit or the time is reached."""
        until = time.monotonic() + self._seconds
        try:
            fits = bounded_search(self._pattern, ignore_case=self._ignore_case)
        except ValueError as error:
            raise ToolError(f"The pattern cannot be read: {error}.") from error
        count = 0
        for file in filter(self._wants, self._candidates()):
            if time.monotonic() > until:
                return self._too_long()
            for number, line in enumerate(self._read(file), 1):
                try:
                    hit = fits(line)
                except Unsearchable:
                    self._notes.append(f"{one_line(file)}:{number} is too long to be searched")
                    break
                if hit:
                    self._hits.setdefault(file, []).append((number, line))
                    count += 1
                if count > self._limit:
                    return None
        return None

    def _candidates(self) -> Iterator[str]:
        if not self._workspace.is_folder(self._path):
            yield self._path
            return
        tree = Tree(self._workspace, self._path)
        yield from tree
        if tree.stopped:
            self._notes.append(tree.stopped)

    def _read(self, file: str) -> list[str]:
        try:
            data = self._workspace.read(file, _FILE + 1)
        except ToolError:
            return []
        if len(data) > _FILE:
            return []
        try:
            return split_lines(shown(decode(file, data)[0]))
        except ToolError:  # binary
            return []


class _Brief:
    """Where a search is little work: there one thread is done before several have begun.

    The last search there tells. Where it tells wrong, that costs some milliseconds, once.
    """

    def __init__(self) -> None:
        self._places: set[str] = set()

    def flags(self, where: str) -> list[str]:
        """For ripgrep; by itself it takes as many threads as there are cores."""
        return ["--threads=1"] if where in self._places else []

    def note(self, where: str, seconds: float) -> None:
        """A whole search there took so much work."""
        self._places.discard(where)
        if seconds < _BRIEF and len(self._places) < _PLACES:
            self._places.add(where)


_brief = _Brief()


def _spent() -> float:
    """Seconds of CPU that programs of ours have used, as far as they have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Heard:
    """What ripgrep says, gathered by file; what is no line of a file is kept apart.

    A file is judged when it is first named, and a line is looked at when all is over: there may be
    many more than are shown.
    """

    def __init__(self, folder: str, only: str, wants: Callable[[str], bool]) -> None:
        self._prefix = "" if folder in ("", ".") else f"{folder}/"
        self._only = only
        self._wants = wants
        self._rest = b""
        self._by_name: dict[bytes, list[bytes] | None] = {}
        self._count = 0
        self.files: dict[str, list[bytes]] = {}  # what was said of each
        self.strange: list[bytes] = []

    def take(self, data: bytes) -> bool:
        """Some more of it. False: that is enough."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            path, between, hit = line.partition(b"\0")
            if not between:
                self.strange = [*self.strange, line][:20]
                continue
            if path not in self._by_name:
                name = self._name(path)
                self._by_name[path] = self.files.setdefault(name, []) if self._wants(name) else None
            if (hits := self._by_name[path]) is not None:
                hits.append(hit)
                self._count += 1
        return not self.is_full

    @property
    def is_full(self) -> bool:
        """Is this as much as anybody wants?"""
        return self._count >= GATHERED

    def _name(self, path: bytes) -> str:
        return self._only or self._prefix + os.fsdecode(path).removeprefix("./")


def _confirmed(data: bytes, heard: list[bytes]) -> list[Hit]:
    """The lines that were heard of, as the file has them, and only where it has them."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # ripgrep reads these as well
        data = data.decode("utf-16", "replace").encode()
    told = [_told(one) for one in heard]
    last = max(number for number, _ in told)
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n", last)  # the rest is one piece
    found: list[Hit] = []
    for number, text in told:
        if 0 < number <= len(lines) and lines[number - 1][:_SURE] == text[:_SURE]:
            found.append((number, _text(lines[number - 1])))
    return found


def _told(heard: bytes) -> tuple[int, bytes]:
    number, _, text = heard.partition(b":")
    return int(number) if number.isdigit() else 0, text


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _order(path: str) -> list[tuple[bool, str]]:
    """A folder's own files before its folders, both by name."""
    *folders, name = path.split("/")
    return [*((True, folder) for folder in folders), (False, name)]


def _shown(path: str, hits: list[Hit]) -> list[str]:
    name = one_line(path, 1000)
    return [f"{name}:{number}:{_cut(line)}" for number, line in hits]


def _cut(line: str) -> str:
    line = line.rstrip("\r\n")
    return line if len(line) <= _COLUMNS else f"{line[:_COLUMNS]} [… long line]"
