"""`--output-schema`: the final answer has to be one JSON value that fits a JSON Schema."""

from pathlib import Path
from typing import Any

import click
import msgspec

from bridle.engine.structured_output import AnswerSchema
from bridle.errors import ConfigError

_FIX = "Fix the schema in that file."


class Shape(AnswerSchema):
    """A JSON Schema from a file, ready to check answers."""

    def __init__(self, path: Path) -> None:
        schema = _read(path)
        try:
            super().__init__(schema)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error.message}", hint=_FIX) from None


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
