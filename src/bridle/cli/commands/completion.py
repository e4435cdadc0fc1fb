"""`bridle completion`: the script that teaches a shell to complete bridle's commands.

The scripts lie beside this file, one for each shell. They ask `bridle completion SHELL --words`
what could come next: lines of a word, a tab and a description, or of `:files` or `:folders`.
"""

from pathlib import Path

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--words", "asked", is_flag=True, hidden=True)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.pass_context
def command(ctx: click.Context, shell: str, asked: bool, words: tuple[str, ...]) -> None:
    """Print a script for your shell that completes commands, options, sessions and models.

    \b
    bash:  eval "$(bridle completion bash)"   in ~/.bashrc
    zsh:   eval "$(bridle completion zsh)"    in ~/.zshrc, after compinit
    fish:  bridle completion fish | source    in ~/.config/fish/config.fish
    """
    if asked:
        root = ctx.find_root().command
        assert isinstance(root, click.Group)
        click.echo(_answered(root, list(words)), nl=False)
        return
    if words:
        raise click.UsageError(f"`bridle completion {shell}` takes no more words")
    click.echo((Path(__file__).parent.parent / f"completion.{shell}").read_text("utf-8"), nl=False)


def _answered(root: click.Group, words: list[str]) -> str:
    """A line for each word that could come next. Nothing may go wrong under a person's fingers."""
    from bridle.cli.completion_words import next_words

    try:
        found = next_words(root, words)
    except Exception:  # a broken log, a folder that cannot be read: then there is nothing to offer
        return ""
    return "".join(f"{one.value}\t{one.about}\n" for one in found)
