"""`bridle new`: a small project to begin with, which runs at once.

Templates lie beside this module and are copied with their names filled in. Only a folder that is
empty or not there yet is written to; nothing is ever overwritten, and what was begun and could not
be finished is taken away again.
"""

import keyword
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from bridle.cli.command_group import LazyGroup
from bridle.cli.style import plain

TABLE = {"chat-app": ("new:chat_app", "A chat of your own: a table, its tools, an assistant.")}
_TEMPLATES = Path(__file__).with_name("new_chat_app")
_END = ".template"
_LONGEST = 40
_OURS = ("bridle", "tests", "test", "app", "tools", "tables", "profile", "rules")


@click.group(name="new", cls=LazyGroup, table=TABLE)
def command() -> None:
    """Write a small project to begin with."""


@click.command("chat-app")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--name", default="", help="What the package is called. Default: as the folder.")
def chat_app(folder: str, name: str) -> int:
    """Write a chat of your own into DIR: a table, its tools, an assistant, and tests.

    It runs at once and needs no key: `pytest` in the folder tells. DIR has to be empty or new.
    """
    place = Path(folder).expanduser()
    package = _package(name or place.resolve().name)
    _check(place)
    title = package.replace("_", " ").capitalize()
    files = _written(
        place, {"package": package, "project": package.replace("_", "-"), "title": title}
    )
    click.echo(f"Wrote {len(files)} files into {plain(folder)}:")
    for one in files:
        click.echo(f"  {one}")
    click.echo("\nIt runs as it is:")
    for line in _next(place, folder, package):
        click.echo(f"  {line}")
    return 0


def _package(name: str) -> str:
    """The name as Python can import it. Raise `UsageError` where that would go wrong."""
    package = name.strip().lower().replace("-", "_").replace(" ", "_")
    advice = "Give another one with --name, such as --name my_chat."
    if not package.isidentifier() or not package.isascii() or keyword.iskeyword(package):
        raise click.UsageError(f"{name!r} cannot be the name of a Python package\n{advice}")
    if len(package) > _LONGEST:
        raise click.UsageError(f"the name has more than {_LONGEST} characters\n{advice}")
    if package.startswith("_") or package in _OURS or package in sys.stdlib_module_names:
        raise click.UsageError(f"{package!r} is the name of something else in Python\n{advice}")
    if _is_taken(package):
        raise click.UsageError(f"there is a Python package {package!r} already\n{advice}")
    return package


def _is_taken(package: str) -> bool:
    """Is there a module of this name? An empty folder that is called so is none."""
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None


def _check(place: Path) -> None:
    if place.exists() and not place.is_dir():
        raise click.UsageError(f"{place} is a file\nName a folder that is empty or not there yet.")
    if place.is_dir() and any(place.iterdir()):
        raise click.UsageError(
            f"{place} is not empty, and nothing in it is overwritten\n"
            "Name a folder that is empty or not there yet."
        )


def _written(place: Path, words: dict[str, str]) -> list[str]:
    """Write every file; all of them, or none."""
    made: list[Path] = []
    try:
        for source in sorted(_TEMPLATES.rglob(f"*{_END}")):
            named = str(source.relative_to(_TEMPLATES)).removesuffix(_END)
            path = place / named.replace("PACKAGE", words["package"])
            _folders(path.parent, made)
            text = source.read_text("utf-8")
            for word, filling in words.items():
                text = text.replace(f"{{{{{word}}}}}", filling)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                made.append(path)
                file.write(text)
    except BaseException:
        for one in reversed(made):
            one.rmdir() if one.is_dir() else one.unlink(missing_ok=True)
        raise
    return [str(one.relative_to(place)) for one in made if one.is_file()]


def _folders(folder: Path, made: list[Path]) -> None:
    """Make it and what is missing above it, and remember what was made."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir()
        made.append(one)


def _next(place: Path, folder: str, package: str) -> list[str]:
    lines = [] if place.resolve() == Path.cwd() else [f"cd {plain(shlex.quote(folder))}"]
    return [*lines, "pytest", f"bridle chat-server --app {package}.app:app --demo"]
