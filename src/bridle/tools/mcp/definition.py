"""What a server says of one of its tools, made fit for a model: cleaned, bounded, checked. Pure.

What cannot be used costs that tool alone. What the server claims of the tool's effects (its
annotations) is not read: it could only make a decision milder.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from bridle.errors import ConfigError
from bridle.workspace.text import neutral, one_line, shorten

DESCRIPTION = 4_000  # characters
SCHEMA = 30_000  # bytes
UNFIT = "x-unfit"  # in the place of a schema that is none
_DEEPEST = 40
_WORDS = ("description", "title", "$comment")
_JOINS = ("oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else")
_KEY = 64
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")

Compile = Callable[[dict[str, Any]], object]  # raises `ConfigError` for a schema that is broken
Schema = dict[str, Any]


class Definition(Struct, frozen=True, omit_defaults=True):
    """A tool as the model is told of it. `digest` stands for what the server said of it.

    `size`: about how many characters a model reads of it. `problem`: why it cannot be offered.
    """

    name: str
    description: str = ""
    parameters: Schema = {}
    digest: str = ""
    problem: str = ""
    size: int = 0


def define(name: str, description: str, schema: Any, compile_schema: Compile) -> Definition:
    """A definition from what a server said. Never raises: what is wrong is said in `problem`."""
    name = name[:1000]
    digest = _digest(name, description, schema)
    told = shorten(neutral(description.strip()), DESCRIPTION)
    try:
        parameters = _fit(schema)
        compile_schema(parameters)
    except (_Unfit, ConfigError) as error:
        problem = one_line(getattr(error, "message", str(error)), 300)
        return Definition(name, told, digest=digest, problem=problem)
    except RecursionError:
        return Definition(name, told, digest=digest, problem="its schema is nested too deeply")
    size = len(told) + len(msgspec.json.encode(parameters))
    return Definition(name, told, parameters, digest, size=size)


class _Unfit(Exception):
    """A schema that no vendor should be sent."""


def _digest(*said: Any) -> str:
    try:
        written = msgspec.json.encode(said, order="deterministic", enc_hook=str)
    except (UnicodeEncodeError, RecursionError):
        written = repr(said).encode(errors="replace")
    return sha256(written).hexdigest()


def _fit(schema: Any) -> Schema:
    """The schema as it may be sent. Raise `_Unfit`."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or UNFIT in schema:
        raise _Unfit("its arguments are not an object")
    if not isinstance(schema.get("properties", {}), dict):
        raise _Unfit("its schema has properties that are none")
    found = _cleaned(schema, 0)
    assert isinstance(found, dict)
    found = {key: value for key, value in found.items() if key not in _JOINS and key != "$schema"}
    found = {"type": "object", "properties": {}, **found}
    try:
        written = msgspec.json.encode(found).decode()
    except (UnicodeEncodeError, TypeError) as error:
        raise _Unfit("its schema holds what is no text") from error
    if len(written) > SCHEMA:
        raise _Unfit(f"its schema is longer than {SCHEMA:,} bytes")
    if neutral(written) != written or any(not _is_key(key) for key in found["properties"]):
        raise _Unfit("its schema has names that cannot be shown, or that no vendor takes")
    return found


def _is_key(key: str) -> bool:
    return 0 < len(key) <= _KEY and _ALLOWED.issuperset(key)


def _cleaned(value: Any, depth: int, *, names: bool = False) -> Any:
    """A schema whose words are harmless. `names`: its keys are names, and not keywords."""
    if depth > _DEEPEST:
        raise _Unfit("its schema is nested too deeply")
    if isinstance(value, list):
        return [_cleaned(one, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, one in value.items():
        if key in _WORDS and isinstance(one, str) and not names:
            found[key] = shorten(neutral(one), DESCRIPTION)
        else:
            inside = not names and key in ("properties", "$defs", "definitions")
            found[key] = _cleaned(one, depth + 1, names=inside)
    return found


def difference(old: Definition, new: Definition) -> str:
    """What is not as it was, in a few words for a person."""
    said = []
    if old.description != new.description:
        said.append(f"it is described otherwise: {one_line(_news(old, new), 200)!r}")
    before, after = _properties(old), _properties(new)
    if added := sorted(after.keys() - before.keys()):
        said.append(f"it takes {one_line(', '.join(added), 120)} now")
    if gone := sorted(before.keys() - after.keys()):
        said.append(f"it takes {one_line(', '.join(gone), 120)} no longer")
    if not added and not gone and old.parameters != new.parameters:
        changed = [key for key in after if before[key] != after[key]]
        said.append(f"its arguments mean something else ({one_line(', '.join(changed), 120)})")
    return "; ".join(said) or "what its server says of it differs"


def _news(old: Definition, new: Definition) -> str:
    """The description from where it differs."""
    same = 0
    for one, other in zip(old.description, new.description, strict=False):
        if one != other:
            break
        same += 1
    return ("…" if same > 20 else "") + new.description[max(0, same - 20) :]


def _properties(one: Definition) -> dict[str, Any]:
    found = one.parameters.get("properties")
    return found if isinstance(found, dict) else {}
