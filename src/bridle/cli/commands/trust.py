"""`bridle trust`: let a folder's own rules, hooks and instructions count, once they were shown."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bridle.cli.style import Paint, paint_for, plain

if TYPE_CHECKING:
    from bridle.config.trust import FolderFile, Trust


@click.command()
@click.argument(
    "folder",
    metavar="[DIR]",
    required=False,
    type=click.Path(file_okay=False, resolve_path=True),
)
@click.option("--yes", "-y", is_flag=True, help="Trust it without being asked.")
@click.option("--list", "listing", is_flag=True, help="The folders that are trusted.")
@click.option("--remove", is_flag=True, help="Trust it no longer.")
def command(folder: str | None, yes: bool, listing: bool, remove: bool) -> int:
    """Show what a folder would set, and let it count. DIR is the current one by default.

    A folder's rules, hooks and instructions for the model say nothing until you trust it. What you
    trust is what was shown: a file that changes has to be trusted again.
    """
    from bridle.config.paths import state_folder
    from bridle.config.trust import Trust

    trust = Trust(state_folder(os.environ))
    if listing:
        return _list(trust)
    root = Path(folder or Path.cwd())
    if remove:
        there = trust.revoke(root)
        click.echo(f"{plain(str(root))} {'is no longer trusted' if there else 'was not trusted'}")
        return 0
    if not root.is_dir():
        raise click.UsageError(f"there is no folder {plain(str(root))}")
    return _grant(trust, root, yes=yes)


def _list(trust: "Trust") -> int:
    paint = paint_for(sys.stdout)
    folders = trust.folders()
    for path, since in sorted(folders.items()):
        files = trust.files(path) if Path(path).is_dir() else ()
        changed = [one.name for one in files if not one.trusted]
        said = paint.yellow(f"  changed since: {', '.join(changed)}") if changed else ""
        click.echo(f"{plain(path)}  {paint.dim(plain(since[:10]))}{said}")
    if not folders:
        click.echo("No folder is trusted.")
    return 0


def _grant(trust: "Trust", root: Path, *, yes: bool) -> int:
    from bridle.cli.exit_codes import FAILED
    from bridle.cli.told import confirm, tell

    files = trust.files(root)
    if not files:
        click.echo(f"{plain(str(root))} sets nothing: there is nothing to trust.")
        return 0
    paint = paint_for(sys.stdout)
    for one in files:
        _show(one, paint)
    if all(one.trusted for one in files):
        click.echo("All of this is trusted already.")
        return 0
    check_files(files, root)
    if not confirm(f"Trust these files in {root}?", yes=yes):
        tell(f"nothing was changed; {root} is not trusted")
        return FAILED
    trust.grant(root, files)
    click.echo(f"{plain(str(root))} is trusted, with these files as they are now.")
    return 0


def _show(one: "FolderFile", paint: Paint) -> None:
    """A file in full, harmless to look at."""
    from bridle.workspace.text import neutral

    state = paint.green("trusted") if one.trusted else paint.yellow("not trusted")
    click.echo(f"{paint.bold(plain(one.name))}  {state}")
    if one.problem:
        click.echo(f"  {paint.red(plain(one.problem))}")
    for line in one.data.decode("utf-8", "replace").split("\n"):
        click.echo(f"  │ {neutral(line.rstrip(chr(13)), keep=chr(9))}")


def check_files(files: "tuple[FolderFile, ...]", root: Path) -> None:
    """Rules and hooks that cannot be understood would keep bridle from starting: refused."""
    from bridle.config.diagnostics import parse_diagnostics
    from bridle.config.hooks import parse_hooks
    from bridle.config.mcp import parse_servers
    from bridle.config.policy import parse_rules
    from bridle.config.trust import DIAGNOSTICS, HOOKS, POLICY, SERVERS
    from bridle.config.yaml_file import decode

    for one in files:
        path = root / one.name
        if one.name == POLICY and not one.problem:
            parse_rules(decode(one.data, path, "rules"), path)
        if one.name == HOOKS and not one.problem:
            parse_hooks(decode(one.data, path, "hooks"), path)
        if one.name == SERVERS and not one.problem:
            parse_servers(decode(one.data, path, "servers"), path)
        if one.name == DIAGNOSTICS and not one.problem:
            parse_diagnostics(decode(one.data, path, "diagnostics"), path)
