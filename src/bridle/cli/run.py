"""`bridle run`: one prompt, one turn, one exit code. Standard output holds the answer alone."""

import sys
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from bridle.cli.asking import Asker
from bridle.cli.ending import code_of, tell_ending
from bridle.cli.images import load_image
from bridle.cli.lines import Lines, check_text, read_all
from bridle.cli.options import turn_options
from bridle.cli.render import json_line, one_line
from bridle.cli.screen import Screen
from bridle.cli.setup import Setup, is_interactive
from bridle.cli.shape import Shape
from bridle.cli.turn import Watch, run
from bridle.engine.complete import repair
from bridle.errors import BadReply, EmptyPrompt
from bridle.messages import Part, Text
from bridle.promises.session import TurnResult
from bridle.promises.store import Record
from bridle.runtime.assembly import default_system


@click.command()
@click.argument("prompt", nargs=-1)
@turn_options
@click.option("--json", "as_json", is_flag=True, help="Print the log's records, one a line.")
@click.option(
    "--output-schema",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A JSON Schema that the answer has to fit.",
)
@click.option(
    "--image",
    "images",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
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
    parts = _parts(_words(prompt), flags["images"])
    shape = Shape(flags["output_schema"]) if flags["output_schema"] else None
    return run(Run(Setup(flags), flags, shape).play(parts))


def _words(prompt: tuple[str, ...]) -> str:
    if prompt == ("-",) or (not prompt and sys.stdin and not sys.stdin.isatty()):
        text = read_all()
    elif not prompt:
        raise click.UsageError('there is no prompt\nFor example: bridle run "fix the failing test"')
    else:
        text = check_text(" ".join(prompt), "the prompt")
    if not text.strip():
        raise EmptyPrompt("the prompt is empty", hint="Say what you want done.")
    return text


def _parts(text: str, images: tuple[Path, ...]) -> tuple[Part, ...]:
    return (*map(load_image, images), Text(text))


class Run:
    """One run of the command."""

    def __init__(self, setup: Setup, flags: dict[str, Any], shape: Shape | None) -> None:
        self._setup = setup
        self._json: bool = flags["as_json"]
        self._shape = shape
        silent = self._json or shape is not None
        self._screen = Screen(
            None if silent else sys.stdout,
            sys.stderr,
            quiet=flags["quiet"] or self._json,
            thinking=flags["thinking"],
            paint=setup.paint,
        )
        prompts = flags["on_ask"] == "prompt" or (flags["on_ask"] is None and is_interactive())
        self._asker = Asker(Lines(), self._screen) if prompts else None

    async def play(self, parts: tuple[Part, ...]) -> int:
        """Run the turn; the exit code."""
        provider = self._setup.choose().provider()
        if self._setup.moved:
            self._screen.line(self._screen.paint.dim(one_line(self._setup.moved)))
        extra: dict[str, Any] = {}
        if self._shape is not None:
            extra["schema"] = self._shape.schema
            if not provider.info.native_schema:
                extra["system"] = f"{default_system()}\n\n{self._shape.rule}"
        async with self._setup.engine(provider, self._asker, "run", **extra) as engine:
            session = await self._setup.session(engine)
            watch = Watch(session, self._show, session.seq)
            result = await watch.play(parts)
            if result.ok and self._shape is not None:
                result = await self._shaped(watch, result, self._shape)
        result = self._counted(result)
        name = result.session_id
        tell_ending(result, self._screen, f"Go on with: bridle run --resume {name} …", name=name)
        return code_of(result)

    def _show(self, record: Record) -> None:
        if self._json:
            sys.stdout.buffer.write(json_line(record))
            sys.stdout.buffer.flush()
        self._screen.feed(record)

    async def _shaped(self, watch: Watch, result: TurnResult, shape: Shape) -> TurnResult:
        """Check the answer; one that does not fit is sent back once."""
        try:
            value = shape.fit(result.text)
        except BadReply as problem:
            result = await watch.play(repair(problem))
            if not result.ok:
                return result
            value = shape.fit(result.text)
        if not self._json:
            import json

            click.echo(json.dumps(value, ensure_ascii=not sys.stdout.isatty(), indent=2))
        return result

    def _counted(self, result: TurnResult) -> TurnResult:
        """A question that met the end of the input was put to nobody."""
        unheard = self._asker.unanswered if self._asker is not None else 0
        return replace(result, permission_needed=result.permission_needed + unheard)
