"""`--output-schema`: the final answer has to be one JSON value that fits a JSON Schema.

Knows the schema and the text; asking again is the caller's business.
"""

from pathlib import Path
from typing import Any

import click
import msgspec

from bridle.engine.complete import unfenced
from bridle.engine.schema import compile_schema
from bridle.errors import BadReply, ConfigError

_MEND = "Mend the schema in that file."


class Shape:
    """A JSON Schema from a file, ready to check answers."""

    def __init__(self, path: Path) -> None:
        self.schema = _read(path)
        try:
            self._problems = compile_schema(self.schema)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error.message}", hint=_MEND) from None

    @property
    def rule(self) -> str:
        """What a model is told that has no mode of its own for this."""
        wanted = msgspec.json.encode(self.schema).decode()
        return (
            "Your last message, the one after which you call no more tools, has to be one JSON "
            f"value that fits this JSON Schema, and nothing else:\n{wanted}"
        )

    def fit(self, text: str) -> Any:
        """The value in the answer. Raise `BadReply` with all that is wrong with it."""
        try:
            value = msgspec.json.decode(unfenced(text))
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise _unfit(f"it is not JSON: {error}") from None
        if problems := self._problems(value):
            raise _unfit("; ".join(problems))
        return value


def _unfit(problem: str) -> BadReply:
    return BadReply(
        f"the answer does not fit the schema: {problem}",
        hint="Try again, say it in the prompt, or use a model that can keep to a schema.",
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        schema = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        hint = "--output-schema takes the path of a file that holds a JSON Schema."
        raise click.UsageError(f"{path}: cannot be read: {error.strerror}\n{hint}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: this is not JSON: {error}", hint="The file has to hold one JSON Schema."
        ) from None
    if not isinstance(schema, dict):
        raise ConfigError(f"{path}: a JSON Schema is an object", hint='Start with {"type": …}.')
    return schema
