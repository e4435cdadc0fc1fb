"""The tool `grep`: lines that fit a regular expression. ripgrep where there is one, else Python.

Both give the same shape, `path:line:text`, look at the same files and stop at the same limits.
"""

import asyncio
import re
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.promises.tool import ToolContext, ToolResult
from bridle.tools.glob import matcher, on_disk
from bridle.tools.process import Program, clean_environment
from bridle.tools.prose import Prose
from bridle.tools.threads import in_thread
from bridle.workspace.paths import Workspace
from bridle.workspace.patterns import Unsearchable, bounded_search
from bridle.workspace.text import one_line
from bridle.workspace.tree import Tree

MOST = 200  # lines, when the model names no limit
SECONDS = 30.0
_COLUMNS = 500
_FILE = 20 * 1024 * 1024  # bytes; larger files are not searched
_FOUND = re.compile(rb"([^\0]*)\0(\d+):(.*)", re.DOTALL)
_PLAIN = re.compile(r"[\w.*?-]+")  # a name's pattern that means the same to ripgrep


class Grep:
    """Finds lines in the files of the workspace."""

    name = "grep"
    description = Prose("grep")
    policy = ToolPolicy(read_only=True, risk="low")
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
        if not workspace.exists(path):
            raise ToolError(f"`{one_line(path, 200)}` does not exist in the workspace.")
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
        self._lines: list[str] = []
        self._files: set[str] = set()
        self._notes: list[str] = []

    def result(self) -> ToolResult:
        """What was found, for the model and for the faces."""
        lines = self._lines or [f"No line fits `{one_line(self._pattern)}`."]
        text = "\n".join(lines + [f"[{note}]" for note in self._notes])
        data = {"matches": len(self._lines), "files": len(self._files), "notes": self._notes}
        return ToolResult.success(data, text=text)

    def _add(self, path: str, number: int, line: str) -> bool:
        """Keep a line of a file that is wanted. False: the limit is reached, and this is beyond."""
        if self._wanted is not None and not self._wanted(path):
            return True
        if len(self._lines) >= self._limit:
            self._notes.append(f"only the first {self._limit}; narrow the search, or raise `limit`")
            return False
        line = line.rstrip("\r\n")
        shown = line if len(line) <= _COLUMNS else f"{line[:_COLUMNS]} [… long line]"
        self._lines.append(f"{one_line(path, 1000)}:{number}:{shown}")
        self._files.add(path)
        return True

    def _too_long(self) -> None:
        self._notes.append(f"stopped after {self._seconds:g} s; narrow the search")

    # --- ripgrep ---

    async def with_ripgrep(self, program: str) -> None:
        """Let ripgrep search; what it says is read line by line."""
        real = self._workspace.resolve_path(self._path)
        if real is None:
            raise ToolError(f"`{one_line(self._path, 200)}` leads out of the workspace.")
        rest = bytearray()
        strange: list[bytes] = []

        def take(data: bytes) -> bool:
            rest.extend(data)
            *whole, last = rest.split(b"\n")
            rest[:] = last
            for line in whole:
                if (found := _FOUND.fullmatch(line)) is None:
                    strange[:] = [*strange, bytes(line)][:20]
                elif not self._add(*_parsed(found)):
                    return False
            return True

        argv = [program, *self._flags(), "-e", self._pattern, "--", self._workspace.relative(real)]
        run = Program(argv, self._workspace.root, take)
        ended = await run.run(self._seconds, clean_environment())
        if ended.timed_out:
            self._too_long()
        if ended.code == 2 and not self._lines and strange:
            why = b"\n".join(strange).decode(errors="replace")
            raise ToolError(f"The search cannot be made: {why.removeprefix('rg: ')}")

    def _flags(self) -> list[str]:
        flags = "--no-config --no-messages --no-heading --with-filename --line-number --null"
        files = "--hidden --no-require-git --no-ignore-global --no-ignore-exclude --no-ignore-dot"
        found = [*flags.split(), *files.split(), "--color=never", "--sort=path"]
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
        for file in self._candidates():
            if self._wanted is not None and not self._wanted(file):
                continue
            if time.monotonic() > until:
                return self._too_long()
            for number, line in enumerate(self._read(file), 1):
                try:
                    hit = fits(line)
                except Unsearchable:
                    self._notes.append(f"{one_line(file)}:{number} is too long to be searched")
                    break
                if hit and not self._add(file, number, line):
                    return None
        return None

    def _candidates(self) -> Any:
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


def _parsed(found: re.Match[bytes]) -> tuple[str, int, str]:
    path, number, line = found.groups()
    name = path.decode(errors="replace").removeprefix("./")
    return name, int(number), line.decode(errors="replace")
