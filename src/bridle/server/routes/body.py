"""Bodies, read strictly: a number is no string, and a field that nobody knows is a mistake."""

from collections.abc import Generator
from typing import Any, ClassVar

import msgspec
from litestar.dto import AbstractDTO, DTOFieldDefinition
from litestar.typing import FieldDefinition

from bridle.server.problems import refused


class Body(AbstractDTO[Any]):
    """How Litestar reads the `data` of a route: by msgspec itself, as the value that it is."""

    _decoders: ClassVar[dict[str, msgspec.json.Decoder[Any]]] = {}

    @classmethod
    def create_for_field_definition(
        cls, field_definition: FieldDefinition, handler_id: str, backend_cls: Any = None
    ) -> None:
        """Once for each route that has a body."""
        cls._decoders[handler_id] = msgspec.json.Decoder(field_definition.annotation)

    def decode_bytes(self, value: bytes) -> Any:
        """The value. Raise `Refused`."""
        try:
            return self._decoders[self.asgi_connection.route_handler.handler_id].decode(value)
        except msgspec.ValidationError as error:
            raise refused(
                "invalid_request",
                f"The body does not fit: {error}.",
                "GET /api/openapi.json has the shape of every body.",
            ) from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise refused(
                "invalid_json", f"The body cannot be read: {error}.", "Send one whole JSON value."
            ) from error

    @classmethod
    def generate_field_definitions(
        cls, model_type: type[Any]
    ) -> Generator[DTOFieldDefinition, None, None]:
        """None: the values are their own models."""
        yield from ()

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        """None."""
        return False
