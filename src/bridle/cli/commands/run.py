"""`bridle run`: one prompt, one turn, one exit code. Standard output has only the answer.

Here are the options, and the prompt from arguments and standard input. What runs the turn is
imported once there is a prompt.
"""

from typing import Any

import click

from bridle.cli.options import turn_options
from bridle.cli.user_input import read_piped, read_prompt, read_stdin

_EXAMPLE = 'bridle run "fix the failing test"'


@click.command()
@click.argument("prompt", nargs=-1)
@turn_options
@click.option("--json", "as_json", is_flag=True, help="Print the records of the log, one per line.")
@click.option(
    "--output-schema",
    metavar="FILE",
    type=click.Path(),
    help="JSON Schema that the answer must match.",
)
@click.option(
    "--image",
    "images",
    metavar="FILE",
    multiple=True,
    type=click.Path(),
    help="Image to send with the prompt; can be repeated.",
)
@click.option(
    "--on-ask",
    type=click.Choice(("deny", "prompt", "park")),
    help="What to do if a call needs approval: deny it, ask here, or park the turn until the "
    "approval is given (`bridle approvals`). Default: prompt in a terminal, otherwise deny.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print only the answer and errors.")
@click.option(
    "--detach",
    is_flag=True,
    help="Run in the background: print the session's ID and return. See `bridle ps`.",
)
def command(prompt: tuple[str, ...], **flags: Any) -> int:
    """Send PROMPT and print the answer. If PROMPT is omitted or -, it is read from stdin.

    Piped or redirected input is appended to PROMPT: cat FILE | bridle run "summarise this".
    A pipe that stays empty for 3 seconds is ignored, unless PROMPT is followed by -.

    With --resume or --continue and no PROMPT, a parked turn is continued. If another process has
    the session open, the prompt is sent to that process, and its turn is shown here.

    Exit codes: 0 done, 1 failed, 2 usage, 3 approval needed, 4 a limit was reached, 5 no model or
    no API key for it, 6 the answer was cut off, 130 interrupted.
    """
    text = _read_text(prompt, flags)
    if flags["detach"]:
        from bridle.cli.detached_run import detach

        return detach(text, flags)
    from bridle.cli.prompt_run import run_prompt

    return run_prompt(text, flags)


def _read_text(prompt: tuple[str, ...], flags: dict[str, Any]) -> str:
    """Return the prompt and what is on standard input; empty to resume a session without a prompt.

    With `--on-ask prompt`, standard input has answers and nothing else.
    """
    has_answers = flags["on_ask"] == "prompt"
    if not prompt and (flags["go_on"] or flags["resume"] is not None):
        return "" if has_answers else read_piped(quiet=True).strip()
    if len(prompt) > 1 and prompt[-1] == "-":
        text, more = read_prompt(prompt[:-1], _EXAMPLE), read_stdin()
    elif has_answers or prompt in ((), ("-",)):
        return read_prompt(prompt, _EXAMPLE)
    else:
        text = read_prompt(prompt, _EXAMPLE)
        more = read_piped(quiet=flags["quiet"] or flags["as_json"])
    return f"{text}\n\n<stdin>\n{more.rstrip()}\n</stdin>" if more.strip() else text
