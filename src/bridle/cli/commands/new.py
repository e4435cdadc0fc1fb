"""`bridle new`: create a small project from templates.

Only an empty or new folder is written to, and nothing is ever overwritten. If something fails, the
files that were written are deleted again.
"""

import keyword
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from bridle.cli.command_group import LazyGroup
from bridle.cli.style import plain
from bridle.errors import UsageError

TABLE = {
    "chat-app": ("new:chat_app", "Create a chat of your own: a table, its tools, an assistant.")
}
_TEMPLATES = Path(__file__).parent.parent / "new_chat_app"
_END = ".template"
_LONGEST = 40
_OURS = ("bridle", "tests", "test", "app", "tools", "tables", "profile", "rules")


@click.group(name="new", cls=LazyGroup, table=TABLE, package="bridle.cli.commands")
def command() -> None:
    """Create a small project from a template."""


@click.command("chat-app")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--name", default="", help="Name of the package. Default: the name of the folder.")
def chat_app(folder: str, name: str) -> int:
    """Create a chat of your own in DIR: a table, its tools, an assistant, and tests.

    It runs without an API key; try `pytest` in the folder. DIR must be empty or new.
    """
    place = Path(folder).expanduser()
    package = _package(name or place.resolve().name)
    _check(place)
    title = package.replace("_", " ").capitalize()
    files = _write_files(
        place, {"package": package, "project": package.replace("_", "-"), "title": title}
    )
    click.echo(f"Created {len(files)} files in {plain(folder)}:")
    for name in files:
        click.echo(f"  {name}")
    click.echo("\nTo run it:")
    for line in _next(place, folder, package):
        click.echo(f"  {line}")
    return 0


def _package(name: str) -> str:
    """Return the name as a Python package. Raise `UsageError` if it cannot be one."""
    package = name.strip().lower().replace("-", "_").replace(" ", "_")
    advice = "Choose another name with --name, such as --name my_chat."
    if not package.isidentifier() or not package.isascii() or keyword.iskeyword(package):
        raise UsageError(f"{name!r} cannot be the name of a Python package", hint=f"{advice}")
    if len(package) > _LONGEST:
        raise UsageError(f"the name has more than {_LONGEST} characters", hint=f"{advice}")
    if package.startswith("_") or package in _OURS or package in sys.stdlib_module_names:
        raise UsageError(f"{package!r} is the name of something else in Python", hint=f"{advice}")
    if _is_taken(package):
        raise UsageError(f"there is a Python package {package!r} already", hint=f"{advice}")
    return package


def _is_taken(package: str) -> bool:
    """Is there a module of this name? An empty folder of this name does not count."""
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None


def _check(place: Path) -> None:
    if place.exists() and not place.is_dir():
        raise UsageError(
            f"{place} is a file", hint="Name a folder that is empty or does not exist."
        )
    if place.is_dir() and any(place.iterdir()):
        raise UsageError(
            f"{place} is not empty, and nothing in it is overwritten",
            hint="Name a folder that is empty or does not exist.",
        )


def _write_files(place: Path, words: dict[str, str]) -> list[str]:
    """Write all files, or none of them, and return their names."""
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
        for path in reversed(made):
            path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        raise
    return [str(path.relative_to(place)) for path in made if path.is_file()]


def _folders(folder: Path, made: list[Path]) -> None:
    """Create a folder and its missing parents, and add them to `made`."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        made.append(path)


def _next(place: Path, folder: str, package: str) -> list[str]:
    lines = [] if place.resolve() == Path.cwd() else [f"cd {plain(shlex.quote(folder))}"]
    return [*lines, "pytest", f"bridle chat-server --app {package}.app:app --demo"]
