"""Command lines that look at what was changed: the person's own, and those of a trusted folder.

`ruff check {files}`, or `*.py: mylint {files}` for some files alone. Read into words, once, by the
rules of a shell's quotes; nothing in them is expanded. Reads what is to be run; runs nothing.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct

from bridle.config.marked import composed, decoded, pairs, place_of, says_something
from bridle.config.places import state_folder
from bridle.config.trust import DIAGNOSTICS, Trust
from bridle.errors import ConfigError

FILES = "{files}"
_MOST = 20  # commands
_EXAMPLE = "For example `- ruff check --output-format=concise {files}`."
_FOR = {  # what these can read; they complain of everything else
    "*.py *.pyi": "ruff mypy pyright basedpyright flake8 pylint black isort pyflakes ty",
    "*.js *.jsx *.ts *.tsx *.mjs *.cjs *.mts *.cts": "eslint biome oxlint tsc jshint",
    "*.sh *.bash": "shellcheck",
    "*.go": "gofmt golint staticcheck",
    "*.rb": "rubocop",
    "*.php": "phpstan phpcs",
    "*.css *.scss": "stylelint",
    "*.md": "markdownlint",
    "*.yaml *.yml": "yamllint",
}
_RUNNERS = ("npx", "uvx", "bunx", "pnpx", "env")


class Check(Struct, frozen=True):
    """A command, and for which files it is. `origin` is where it was written."""

    words: tuple[str, ...]
    patterns: tuple[str, ...] = ("*",)
    origin: str = "diagnostics"

    def command(self, files: Iterable[str]) -> str:
        """The line that is judged and run: each file is one word, and no option."""
        names = [f"./{one}" if one.startswith("-") else one for one in files]
        words = [name for word in self.words for name in (names if word == FILES else (word,))]
        return shlex.join(words)

    def concerned(self, files: Iterable[str]) -> tuple[str, ...]:
        """Those of the files that it is for."""
        return tuple(one for one in files if any(_fits(one, each) for each in self.patterns))


class StandingDiagnostics(Struct, frozen=True):
    """The commands that count in a folder, and what deserves a word, with a hint."""

    checks: tuple[Check, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


def standing_diagnostics(
    root: str | Path, mine: Iterable[str], environ: Mapping[str, str] | None = None
) -> StandingDiagnostics:
    """The person's own, then those of the folder where it is trusted. Raise `ConfigError`."""
    checks = tuple(read_check(one, "the setting `diagnostics`") for one in mine)
    theirs = Path(root, DIAGNOSTICS)
    if not os.path.lexists(theirs):
        return StandingDiagnostics(checks)
    trust = Trust(state_folder(os.environ if environ is None else environ))
    data = trust.read(root, DIAGNOSTICS)
    if data is None:
        note = "this folder has its own diagnostics, which do not run"
        hint = "`bridle trust` shows them and lets you accept them."
        return StandingDiagnostics(checks, ((note, hint),))
    found = parse_diagnostics(decoded(data, theirs, "diagnostics"), theirs)
    return StandingDiagnostics((*checks, *found))


def parse_diagnostics(text: str, path: Path) -> tuple[Check, ...]:
    """The commands of a folder's file. Raise `ConfigError` with the line."""
    if not says_something(text):
        return ()
    with composed(text, path) as (loader, root):
        return tuple(_checks(loader, root, path))


def _checks(loader: Any, root: Any, path: Path) -> Iterator[Check]:
    """The entries of `diagnostics:`, or of a bare list."""
    node = root
    if root is not None and root.id == "mapping":
        for key, value, place in pairs(root, path, "the file", _EXAMPLE):
            if key != "diagnostics":
                said = f"{place}: there is no `{key}` in a file of diagnostics"
                raise ConfigError(said, hint=_EXAMPLE)
            node = value
    if node is None:
        return
    if node.id != "sequence" or len(node.value) > _MOST:
        said = f"{place_of(node, path)}: it has to be a list of at most {_MOST} command lines"
        raise ConfigError(said, hint=_EXAMPLE)
    for item in node.value:
        yield read_check(loader.construct_object(item, deep=True), place_of(item, path))


def read_check(text: object, origin: str) -> Check:
    """One command line, understood. Raise `ConfigError`."""
    if not isinstance(text, str) or not text.strip() or not text.isprintable():
        raise ConfigError(f"{origin}: a command line has to be one line of text", hint=_EXAMPLE)
    patterns, line = _apart(text.strip())
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise ConfigError(f"{origin}: {line!r} cannot be read: {error}", hint=_EXAMPLE) from None
    if not words or words[0] == FILES:
        raise ConfigError(f"{origin}: {text!r} names no program", hint=_EXAMPLE)
    if inside := [one for one in words if FILES in one and one != FILES]:
        hint = "`{files}` stands for several words, so it is a word by itself."
        raise ConfigError(f"{origin}: `{inside[0]}` has `{FILES}` inside a word", hint=hint)
    return Check(words, patterns or _usual(words), origin)


def _apart(text: str) -> tuple[tuple[str, ...], str]:
    """`*.py,*.pyi: ruff …`: the patterns, and the command."""
    head, colon, rest = text.partition(": ")
    if colon and "*" in head and not set(head) & set(" '\"$\\"):
        return tuple(one for one in head.split(",") if one), rest
    return (), text


def _usual(words: tuple[str, ...]) -> tuple[str, ...]:
    """The files that a well-known program can read; all, of one that is not."""
    plain = [one for one in words if not one.startswith("-") and one not in _RUNNERS]
    module = "-m" in words[:-1] and words[words.index("-m") + 1]
    name = module or (Path(plain[0]).name if plain else "")
    for patterns, programs in _FOR.items():
        if name in programs.split():
            return tuple(patterns.split())
    return ("*",)


def _fits(path: str, pattern: str) -> bool:
    return fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern)
