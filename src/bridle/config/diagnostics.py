"""Command lines that look at changed files. Parses them; runs nothing.

`ruff check {files}`, or `*.py: mylint {files}` for some files only. A line is split into words by
the rules of a shell's quotes; nothing in it is expanded.
"""

import shlex
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct

from bridle.config.yaml_file import has_content, items_of, location_of, open_yaml
from bridle.errors import ConfigError

FILES = "{files}"
_MOST = 20  # commands
_EXAMPLE = "For example `- ruff check --output-format=concise {files}`."
_READABLE = {  # the files that these programs can read; they complain about all others
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
    """A command, and the files that it is for. `origin` is where it was written."""

    words: tuple[str, ...]
    patterns: tuple[str, ...] = ("*",)
    origin: str = "diagnostics"

    def command(self, files: Iterable[str]) -> str:
        """The command line for these files. Each is one word, and none is read as an option."""
        names = [f"./{file}" if file.startswith("-") else file for file in files]
        words = [name for word in self.words for name in (names if word == FILES else (word,))]
        return shlex.join(words)

    def matching(self, files: Iterable[str]) -> tuple[str, ...]:
        """Those of the files that it is for."""
        return tuple(
            file for file in files if any(_matches(file, pattern) for pattern in self.patterns)
        )


def parse_diagnostics(text: str, path: Path) -> tuple[Check, ...]:
    """Parse a folder's file of commands. Raise `ConfigError` with the line."""
    if not has_content(text):
        return ()
    with open_yaml(text, path) as (loader, root):
        return tuple(_checks(loader, root, path))


def _checks(loader: Any, root: Any, path: Path) -> Iterator[Check]:
    """Yield the entries of `diagnostics:`, or of a bare list."""
    node = root
    if root is not None and root.id == "mapping":
        for key, value, location in items_of(root, path, "the file", _EXAMPLE):
            if key != "diagnostics":
                raise ConfigError(
                    f"{location}: there is no `{key}` in a file of diagnostics", hint=_EXAMPLE
                )
            node = value
    if node is None:
        return
    if node.id != "sequence" or len(node.value) > _MOST:
        raise ConfigError(
            f"{location_of(node, path)}: it has to be a list of at most {_MOST} command lines",
            hint=_EXAMPLE,
        )
    for item in node.value:
        yield parse_check(loader.construct_object(item, deep=True), location_of(item, path))


def parse_check(text: object, origin: str) -> Check:
    """Parse one command line. Raise `ConfigError`."""
    if not isinstance(text, str) or not text.strip() or not text.isprintable():
        raise ConfigError(f"{origin}: a command line has to be one line of text", hint=_EXAMPLE)
    patterns, line = _split_patterns(text.strip())
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise ConfigError(f"{origin}: {line!r} cannot be read: {error}", hint=_EXAMPLE) from None
    if not words or words[0] == FILES:
        raise ConfigError(f"{origin}: {text!r} names no program", hint=_EXAMPLE)
    if inside := [word for word in words if FILES in word and word != FILES]:
        hint = "`{files}` stands for several words, so it is a word by itself."
        raise ConfigError(f"{origin}: `{inside[0]}` has `{FILES}` inside a word", hint=hint)
    return Check(words, patterns or _default_patterns(words), origin)


def _split_patterns(text: str) -> tuple[tuple[str, ...], str]:
    """`*.py,*.pyi: ruff …`: the patterns, and the command."""
    head, colon, rest = text.partition(": ")
    if colon and "*" in head and not set(head) & set(" '\"$\\"):
        return tuple(pattern for pattern in head.split(",") if pattern), rest
    return (), text


def _default_patterns(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that a well-known program can read; for any other program, all files."""
    plain = [word for word in words if not word.startswith("-") and word not in _RUNNERS]
    module = "-m" in words[:-1] and words[words.index("-m") + 1]
    name = module or (Path(plain[0]).name if plain else "")
    for patterns, programs in _READABLE.items():
        if name in programs.split():
            return tuple(patterns.split())
    return ("*",)


def _matches(path: str, pattern: str) -> bool:
    return fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern)
