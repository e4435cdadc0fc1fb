"""An answer that has to be one JSON value which fits a JSON Schema: the rule, and the check."""

from typing import Any

import msgspec

from bridle.engine.complete import repair, unfenced
from bridle.engine.schema import compile_schema
from bridle.errors import BadReply
from bridle.messages import Message, user
from bridle.promises.provider import ProviderInfo
from bridle.promises.schema import can_be_closed


class AnswerSchema:
    """A JSON Schema, ready to check answers. Raise `ConfigError` for one that is broken."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._problems = compile_schema(schema)

    def is_native_to(self, info: ProviderInfo) -> bool:
        """Whether the provider's API has a mode of its own that takes this schema."""
        return info.native_schema and can_be_closed(self.schema)

    @property
    def rule(self) -> str:
        """What to tell a model whose API has no mode of its own for this."""
        wanted = msgspec.json.encode(self.schema).decode()
        return (
            "Your last message, the one after which you call no more tools, has to be one JSON "
            f"value that fits this JSON Schema, and nothing else:\n{wanted}"
        )

    def fit(self, text: str) -> Any:
        """Return the value in the answer. Raise `BadReply` with everything that is wrong."""
        try:
            value = msgspec.json.decode(unfenced(text))
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise _unfit(f"it is not JSON: {error}") from None
        if problems := self._problems(value):
            raise _unfit("; ".join(problems))
        return value

    @staticmethod
    def correction(problem: BadReply) -> Message:
        """The message that asks the model once more, with what was wrong."""
        return user(repair(problem))


def _unfit(problem: str) -> BadReply:
    return BadReply(
        f"the answer does not fit the schema: {problem}",
        hint="Try again, describe the format in the prompt, or use a model that supports schemas.",
    )
