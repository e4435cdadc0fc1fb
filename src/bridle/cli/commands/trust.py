"""`bridle trust`: apply a folder's own rules, hooks and instructions, after showing them."""

import os
import sys
from pathlib import Path

import click

from bridle.cli.exit_codes import FAILED
from bridle.cli.output import confirm, print_result
from bridle.cli.style import Paint, paint_for, plain
from bridle.config.paths import state_folder
from bridle.config.trust import FolderFile, Trust
from bridle.errors import UsageError
from bridle.workspace.text import neutral


@click.command()
@click.argument(
    "folder",
    metavar="[DIR]",
    required=False,
    type=click.Path(file_okay=False, resolve_path=True),
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option("--list", "listing", is_flag=True, help="List the trusted folders.")
@click.option("--remove", is_flag=True, help="Stop trusting the folder.")
def command(folder: str | None, yes: bool, listing: bool, remove: bool) -> int:
    """Show the files with which a folder can change how bridle works, and trust them.

    DIR is the current folder by default. A folder's rules, hooks and instructions for the model
    have no effect until you trust them. You trust exactly what was shown: a file that changes has
    to be trusted again.
    """
    trust = Trust(state_folder(os.environ))
    if listing:
        return _list(trust)
    root = Path(folder or Path.cwd())
    if remove:
        was_trusted = trust.revoke(root)
        text = "is no longer trusted" if was_trusted else "was not trusted"
        click.echo(f"{plain(str(root))} {text}")
        return 0
    if not root.is_dir():
        raise UsageError(f"there is no folder {plain(str(root))}")
    return _trust(trust, root, yes=yes)


def _list(trust: Trust) -> int:
    paint = paint_for(sys.stdout)
    folders = trust.folders()
    for path, since in sorted(folders.items()):
        files = trust.files(path) if Path(path).is_dir() else ()
        changed = [file.name for file in files if not file.trusted]
        note = paint.yellow(f"  changed since: {', '.join(changed)}") if changed else ""
        click.echo(f"{plain(path)}  {paint.dim(plain(since[:10]))}{note}")
    if not folders:
        click.echo("No folder is trusted.")
    return 0


def _trust(trust: Trust, root: Path, *, yes: bool) -> int:
    from bridle.config.folder import check_files  # it reads YAML

    files = trust.files(root)
    if not files:
        click.echo(f"{plain(str(root))} has no rules, hooks or instructions: nothing to trust.")
        return 0
    paint = paint_for(sys.stdout)
    for file in files:
        _show(file, paint)
    if all(file.trusted for file in files):
        click.echo("All of these files are trusted already.")
        return 0
    check_files(files, root)
    if not confirm(f"Trust these files in {root}?", yes=yes):
        print_result(f"nothing was changed; {root} is not trusted")
        return FAILED
    trust.grant(root, files)
    click.echo(f"{plain(str(root))} is trusted, with these files as they are now.")
    return 0


def _show(file: FolderFile, paint: Paint) -> None:
    """Print a file in full, harmless to look at."""
    state = paint.green("trusted") if file.trusted else paint.yellow("not trusted")
    click.echo(f"{paint.bold(plain(file.name))}  {state}")
    if file.problem:
        click.echo(f"  {paint.red(plain(file.problem))}")
    for line in file.data.decode("utf-8", "replace").split("\n"):
        click.echo(f"  │ {neutral(line.rstrip(chr(13)), keep=chr(9))}")
