"""`bridle run`: one prompt, one turn, one exit code. Standard output holds the answer alone.

The options and the prompt; what runs the turn is imported once there is one to run.
"""

import sys
from typing import Any

import click

from bridle.cli.options import turn_options
from bridle.cli.words import check_text, read_all


@click.command()
@click.argument("prompt", nargs=-1)
@turn_options
@click.option("--json", "as_json", is_flag=True, help="Print the log's records, one a line.")
@click.option(
    "--output-schema",
    metavar="FILE",
    type=click.Path(),
    help="A JSON Schema that the answer has to fit.",
)
@click.option(
    "--image",
    "images",
    metavar="FILE",
    multiple=True,
    type=click.Path(),
    help="A picture to send along; may be given again.",
)
@click.option(
    "--on-ask",
    type=click.Choice(("deny", "prompt")),
    help="When a call needs approval. Default: prompt at a terminal, else deny.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print the answer and errors, nothing else.")
def command(prompt: tuple[str, ...], **flags: Any) -> int:
    """Send PROMPT and print the answer. Without PROMPT, or with -, it is read from stdin.

    Exit codes: 0 done, 1 failed, 2 usage, 3 permission needed, 4 a limit reached, 130 interrupted.
    """
    text = _words(prompt)
    from bridle.cli.once import run_once

    return run_once(text, flags)


def _words(prompt: tuple[str, ...]) -> str:
    if prompt == ("-",) or (not prompt and sys.stdin and not sys.stdin.isatty()):
        text = read_all()
    elif not prompt:
        raise click.UsageError('there is no prompt\nFor example: bridle run "fix the failing test"')
    else:
        text = check_text(" ".join(prompt), "the prompt")
    if not text.strip():
        from bridle.errors import EmptyPrompt

        raise EmptyPrompt("the prompt is empty", hint="Say what you want done.")
    return text
