"""`bridle completion`: the script that teaches a shell to complete bridle's commands."""

import click

from bridle.cli.completion import SHELLS, script_of


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script for your shell that completes commands, options, sessions and models.

    \b
    bash:  eval "$(bridle completion bash)"   in ~/.bashrc
    zsh:   eval "$(bridle completion zsh)"    in ~/.zshrc, after compinit
    fish:  bridle completion fish | source    in ~/.config/fish/config.fish
    """
    root = ctx.find_root().command
    assert isinstance(root, click.Group)
    click.echo(script_of(root, shell), nl=False)
