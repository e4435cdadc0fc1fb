"""`bridle run`: one prompt, one turn, one exit code. Standard output holds the answer alone.

The options, and the prompt from arguments and standard input. What runs the turn is imported once
there is one to run.
"""

from typing import Any

import click

from bridle.cli.options import turn_options
from bridle.cli.user_input import read_piped, read_prompt, read_stdin

_EXAMPLE = 'bridle run "fix the failing test"'


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
    type=click.Choice(("deny", "prompt", "park")),
    help="When a call needs approval: refuse it, ask here, or stop until somebody has answered "
    "(`bridle approvals`). Default: prompt at a terminal, else deny.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print the answer and errors, nothing else.")
@click.option(
    "--detach",
    is_flag=True,
    help="Run it in the background: print the session's id and return (`bridle ps`, `attach`).",
)
def command(prompt: tuple[str, ...], **flags: Any) -> int:
    """Send PROMPT and print the answer. Without PROMPT, or with -, it is read from stdin.

    Piped or redirected input is appended to PROMPT: cat FILE | bridle run "summarise this".
    A pipe that stays empty for 3 seconds is ignored, unless PROMPT is followed by -.

    With --resume or --continue and no PROMPT, a turn that waits for answers goes on. A session that
    another process holds is sent the prompt, and what happens there is shown.

    Exit codes: 0 done, 1 failed, 2 usage, 3 permission needed, 4 a limit reached, 5 no
    model or no key for it, 6 the answer cut off, 130 interrupted.
    """
    text = _read_text(prompt, flags)
    if flags["detach"]:
        from bridle.cli.detaching import detach

        return detach(text, flags)
    from bridle.cli.prompt_run import PromptRun
    from bridle.cli.signals import run_async

    return run_async(PromptRun(text, flags).run())


def _read_text(prompt: tuple[str, ...], flags: dict[str, Any]) -> str:
    """Return the prompt with what is on standard input; empty to resume an earlier session as is.

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
