"""`bridle serve token`: the tokens of other people and programs, by name and role."""

import sys
from typing import TYPE_CHECKING

import click

from bridle.cli.command_group import LazyGroup
from bridle.cli.commands.serve import server_folder
from bridle.cli.output import print_json, print_result
from bridle.cli.style import paint_for, plain

if TYPE_CHECKING:
    from bridle.server.tokens import Tokens

TABLE = {
    "add": ("serve_tokens:add", "Create a token for a person or program."),
    "list": ("serve_tokens:list_tokens", "List the tokens and their roles."),
    "revoke": ("serve_tokens:revoke", "Revoke a token, effective immediately."),
}
_ROLES = ("watch", "answer", "drive", "admin")


@click.group(name="token", cls=LazyGroup, table=TABLE, package="bridle.cli.commands")
def command() -> None:
    """Manage tokens for other people and programs. What they send and answer carries their names.

    Each role includes the ones before it. watch: see sessions. answer: answer approvals. drive:
    send prompts and change sessions. admin: delete sessions, and set the mode auto, in which
    nothing needs approval.
    """


@click.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(_ROLES),
    default="drive",
    show_default=True,
    help="What the token allows; see `bridle serve token --help`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def add(name: str, role: str, as_json: bool) -> None:
    """Create a token for NAME. It is shown only once, because only its hash is stored."""
    token = _tokens().add(name, role)  # type: ignore[arg-type]  # click has checked it
    if as_json:
        print_json({"name": name, "role": role, "token": token})
        return
    click.echo(token)
    click.echo(
        paint_for(sys.stderr).dim(f"  {plain(name)} · {role} · shown only this once"), err=True
    )


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def list_tokens(as_json: bool) -> None:
    """List the tokens and their roles."""
    found = _tokens().list()
    if as_json:
        print_json([{"name": one.name, "role": one.role} for one in found])
    elif not found:
        print_result("Only you have a token.", "bridle serve token add NAME --role drive")
    for one in () if as_json else found:
        click.echo(f"{plain(one.name):20} {one.role}")


@click.command("revoke")
@click.argument("name")
def revoke(name: str) -> None:
    """Revoke the token of NAME. This takes effect at once, without a restart."""
    _tokens().revoke(name)
    print_result(f"revoked the token of {name}")


def _tokens() -> "Tokens":
    from bridle.server.tokens import Tokens

    return Tokens(server_folder())
