"""`bridle serve token`: the tokens of other people and programs, by name and role."""

import sys
from typing import TYPE_CHECKING

import click

from bridle.cli.command_group import LazyGroup
from bridle.cli.serve import server_folder
from bridle.cli.style import paint_for, plain
from bridle.cli.told import tell, tell_json

if TYPE_CHECKING:
    from bridle.server.tokens import Tokens

TABLE = {
    "add": ("serve_tokens:add", "Make a token for somebody; it is shown once."),
    "list": ("serve_tokens:list_tokens", "Who has a token, and what they may."),
    "revoke": ("serve_tokens:revoke", "Take somebody's token away, at once."),
}
_ROLES = ("watch", "answer", "drive", "admin")


@click.group(name="token", cls=LazyGroup, table=TABLE)
def command() -> None:
    """Tokens for other people and programs. Their names stand on what they send and answer.

    Roles, each with the rights of those before it: watch looks; answer says yes or no to what is
    asked; drive sends prompts and changes sessions; admin deletes sessions and lifts every question
    (the mode auto).
    """


@click.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(_ROLES), default="drive", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def add(name: str, role: str, as_json: bool) -> None:
    """Make a token for NAME. Only its hash is kept, so it is shown this once."""
    token = _tokens().add(name, role)  # type: ignore[arg-type]  # click has checked it
    if as_json:
        tell_json({"name": name, "role": role, "token": token})
        return
    click.echo(token)
    click.echo(paint_for(sys.stderr).dim(f"  {plain(name)} · {role} · shown this once"), err=True)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
def list_tokens(as_json: bool) -> None:
    """Who has a token, and what they may."""
    found = _tokens().list()
    if as_json:
        tell_json([{"name": one.name, "role": one.role} for one in found])
    elif not found:
        tell("Nobody but you has a token.", "bridle serve token add NAME --role drive")
    for one in () if as_json else found:
        click.echo(f"{plain(one.name):20} {one.role}")


@click.command("revoke")
@click.argument("name")
def revoke(name: str) -> None:
    """Take NAME's token away. It opens nothing from now on; no restart is needed."""
    _tokens().revoke(name)
    tell(f"the token of {name} opens nothing any more")


def _tokens() -> "Tokens":
    from bridle.server.tokens import Tokens

    return Tokens(server_folder())
