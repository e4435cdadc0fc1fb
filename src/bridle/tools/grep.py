"""The tool `grep`: lines that fit a regular expression. ripgrep where there is one, else Python.

Both look at the same files and give the same lines in the same order, `path:line:text`. Files that
hold credentials are left out, unless it is them that were asked for: then the gate has spoken.
"""

import asyncio
import re
import stat
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.promises.tool import ToolContext, ToolResult
from bridle.tools.glob import matcher
from bridle.tools.opening import on_disk, pinned, status
from bridle.tools.process import Program, clean_environment
from bridle.tools.prose import Prose
from bridle.tools.threads import in_thread
from bridle.workspace.paths import Workspace
from bridle.workspace.patterns import Unsearchable, bounded_search
from bridle.workspace.protected import care_of
from bridle.workspace.text import one_line
from bridle.workspace.tree import Tree

MOST = 200  # lines, when the model names no limit
SECONDS = 30.0
GATHERED = 20_000  # lines that are put in order; beyond that, which come first is chance
_COLUMNS = 500
_FILE = 20 * 1024 * 1024  # bytes; larger files are not searched
_FOUND = re.compile(rb"([^\0]*)\0(\d+):(.*)", re.DOTALL)
_PLAIN = re.compile(r"[\w.*?-]+")  # a name's pattern that means the same to ripgrep


class Grep:
    """Finds lines in the files of the workspace."""

    name = "grep"
    description = Prose("grep")
    policy = ToolPolicy(read_only=True, risk="low", files=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "A regular expression."},
            "path": {"type": "string", "description": "A file or folder. Default: all."},
            "glob": {"type": "string", "description": "Only files that fit, such as *.py."},
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
        workspace = on_disk(context.workspace)
        path = workspace.relative(arguments.get("path", "."))
        _refuse_odd(workspace, path)
        seconds = SECONDS
        if context.deadline is not None:
            seconds = min(seconds, context.deadline - asyncio.get_running_loop().time())
        search = _Search(workspace, path, arguments, max(seconds, 0.0))
        program = find_ripgrep() if self._ripgrep else None
        if program is None:
            await in_thread(search.in_python)
        else:
            await search.with_ripgrep(program)
        return search.result()


def _refuse_odd(workspace: Workspace, path: str) -> None:
    """Nothing can be searched but a file or a folder: a pipe would be waited for."""
    found = status(workspace, path)
    if found is None:
        raise ToolError(f"`{one_line(path, 200)}` does not exist in the workspace.")
    if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
        raise ToolError(f"`{one_line(path, 200)}` is a device, a pipe or a socket, not a file.")


@cache
def find_ripgrep() -> str | None:
    """ripgrep on the PATH, or beside the interpreter, where its wheel puts it."""
    import shutil

    beside = Path(sys.executable).with_name("rg")
    return shutil.which("rg") or (str(beside) if beside.exists() else None)


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
        self._found: list[tuple[str, int, str]] = []
        self._notes: list[str] = []

    def result(self) -> ToolResult:
        """What was found, for the model and for the faces."""
        found = sorted(self._found, key=_order)
        notes = list(self._notes)
        if len(found) > self._limit:
            notes.append(f"only the first {self._limit}; narrow the search, or raise `limit`")
        if len(found) >= GATHERED:
            notes.append(f"over {GATHERED:,} lines fit; these need not be the first of them")
        found = found[: self._limit]
        lines = [_shown(*one) for one in found] or [f"No line fits `{one_line(self._pattern)}`."]
        text = "\n".join(lines + [f"[{note}]" for note in notes])
        files = len({path for path, _, _ in found})
        return ToolResult.success(
            {"matches": len(found), "files": files, "notes": notes}, text=text
        )

    def _wants(self, path: str) -> bool:
        """Is this file to be searched?"""
        if self._wanted is not None and not self._wanted(path):
            return False
        # Nothing is said of such a file: that a pattern fits it says what is in it.
        return self._opens_secrets or not care_of(path).reading

    def _too_long(self) -> None:
        self._notes.append(f"stopped after {self._seconds:g} s; narrow the search")

    # --- ripgrep ---

    async def with_ripgrep(self, program: str) -> None:
        """Let ripgrep search, as many files at once as it likes; what it says is put in order."""
        strange: list[bytes] = []
        with pinned(self._workspace, self._path) as (place, target, handles):
            heard = _Heard(self._path if target == "." else "", strange)
            only = "" if self._workspace.is_folder(self._path) else self._path

            def take(data: bytes) -> bool:
                for path, number, line in heard.lines(data):
                    if self._wants(only or path):
                        self._found.append((only or path, number, line))
                return len(self._found) < GATHERED

            argv = [program, *self._flags(), "-e", self._pattern, "--", target]
            run = Program(argv, place, take, handles=handles)
            ended = await run.run(self._seconds, clean_environment())
        if ended.timed_out:
            self._too_long()
        if ended.code == 2 and not self._found and strange:
            why = b"\n".join(strange).decode(errors="replace")
            raise ToolError(f"The search cannot be made: {why.removeprefix('rg: ')}")

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
                    self._found.append((file, number, line))
                if len(self._found) > self._limit:
                    return None
        return None

    def _candidates(self) -> Iterable[str]:
        if not self._workspace.is_folder(self._path):
            return [self._path]
        return Tree(self._workspace, self._path)

    def _read(self, file: str) -> list[str]:
        try:
            data = self._workspace.read(file, _FILE + 1)
        except ToolError:
            return []
        if len(data) > _FILE or b"\0" in data[:8192]:
            return []
        lines = data.decode(errors="replace").split("\n")
        return lines if lines[-1] else lines[:-1]


class _Heard:
    """What ripgrep says, line by line; what is no line of a file is kept apart."""

    def __init__(self, folder: str, strange: list[bytes]) -> None:
        self._prefix = "" if folder in ("", ".") else f"{folder}/"
        self._strange = strange
        self._rest = b""

    def lines(self, data: bytes) -> Iterable[tuple[str, int, str]]:
        """Path, number and text of the lines that are whole now."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            if (found := _FOUND.fullmatch(line)) is None:
                self._strange[:] = [*self._strange, line][:20]
                continue
            path = found[1].decode(errors="surrogateescape").removeprefix("./")
            yield self._prefix + path, int(found[2]), found[3].decode(errors="replace")


def _order(found: tuple[str, int, str]) -> tuple[list[tuple[bool, str]], int]:
    """A folder's own files before its folders, both by name; then the lines."""
    *folders, name = found[0].split("/")
    return [*((True, folder) for folder in folders), (False, name)], found[1]


def _shown(path: str, number: int, line: str) -> str:
    line = line.rstrip("\r\n")
    text = line if len(line) <= _COLUMNS else f"{line[:_COLUMNS]} [… long line]"
    return f"{one_line(path, 1000)}:{number}:{text}"
