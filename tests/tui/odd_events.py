"""Events of every kind with odd values, made from a seed: what a hostile server could send."""

from random import Random
from typing import Any

import msgspec
from msgspec import inspect

import bridle.events as events
from bridle.protocols.codec import decode_data

WORDS = (
    "",
    "a",
    "c1",
    "one",
    "shell",
    "\x1b]52;c;x\x07",
    "\u202eodd",
    "[b]",
    "x" * 300,
    "a\nb\r\n",
)
SIMPLE = {
    inspect.BoolType: (True, False),
    inspect.IntType: (0, 1, 2, 3, 7, -1, -(2**40), 2**53),
    inspect.FloatType: (0.0, -1.5, 1e308, 0.004, 3),
    inspect.NoneType: (None,),
    inspect.AnyType: (None, 5, "word", [1, ["x"]], {"command": 7}, True),
}


def kinds():
    """Every event that has a tag."""
    found = [one for one in vars(events).values() if isinstance(one, type)]
    structs = [one for one in found if issubclass(one, msgspec.Struct)]
    return [one for one in structs if one.__struct_config__.tag is not None]


def odd_event(random: Random) -> Any:
    """One of them, as it would come out of a stream; None where nobody could send it."""
    kind = random.choice(kinds())
    value = _odd(inspect.type_info(kind), random, 0)
    try:
        return decode_data(msgspec.json.encode(value))
    except (msgspec.MsgspecError, ValueError):
        return None


def _odd(kind: Any, random: Random, depth: int) -> Any:
    if isinstance(kind, inspect.StructType):
        return _struct(kind, random, depth)
    if isinstance(kind, inspect.UnionType):
        return _odd(random.choice(kind.types), random, depth)
    if isinstance(kind, inspect.DictType):
        pairs = range(_few(random, depth))
        return {random.choice(WORDS): _odd(kind.value_type, random, depth + 1) for _ in pairs}
    if isinstance(kind, inspect.TupleType):
        return [_odd(one, random, depth + 1) for one in kind.item_types]
    if (inner := getattr(kind, "item_type", None)) is not None:
        return [_odd(inner, random, depth + 1) for _ in range(_few(random, depth))]
    return random.choice(_plain(kind))


def _plain(kind: Any) -> tuple[Any, ...]:
    if isinstance(kind, inspect.LiteralType):
        return kind.values
    return SIMPLE.get(type(kind), WORDS)


def _few(random: Random, depth: int) -> int:
    return random.randrange(3) if depth < 4 else 0


def _struct(kind: Any, random: Random, depth: int) -> dict[str, Any]:
    made = {kind.tag_field: kind.tag} if kind.tag_field else {}
    for one in kind.fields:
        if one.required or (random.random() < 0.6 and depth < 5):
            made[one.encode_name] = _odd(one.type, random, depth + 1)
    return made
