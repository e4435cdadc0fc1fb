"""JSON Schema as a check: compiled once into closures, it answers with problems a model can read.

Covers what the schemas of tools use. `format`, annotations and unknown keywords say nothing here.
A value is plain JSON: dict, list, str, int, float, bool, None. Knows nothing of tools or calls.

Inside, a check gives None for a fit and otherwise problems as (path, words); a parent puts its key
before the path on the way up, so that a value that fits costs no bookkeeping.
"""

from collections.abc import Callable
from typing import Any

from bridle.engine.schema_parts import PART_KEYWORDS, anything, together
from bridle.engine.schema_values import VALUE_KEYWORDS, Check, Problem, broken
from bridle.workspace.patterns import Unsearchable

Validator = Callable[[Any], list[str]]

MOST_SHOWN = 20  # problems; beyond that the count says enough


def compile_schema(schema: dict[str, Any] | bool) -> Validator:
    """A function that lists what is wrong with a value. Raise `ConfigError` for a broken schema."""
    compiler = _Compiler(schema)
    check = compiler.compile(schema, "#")
    compiler.finish()

    def problems(value: Any) -> list[str]:
        try:
            found = check(value)
        except RecursionError:
            return ["the value is nested too deeply to be checked"]
        except Unsearchable as refused:  # it flies past `not` and `anyOf`: no check may pass by it
            return [str(refused)]
        return [] if found is None else _worded(found)

    return problems


def _worded(found: list[Problem]) -> list[str]:
    lines = [f"`{path.removeprefix('.')}`: {words}" if path else words for path, words in found]
    if len(lines) > MOST_SHOWN:
        return [*lines[:MOST_SHOWN], f"and {len(lines) - MOST_SHOWN} more problems"]
    return lines


class _Compiler:
    """Turns a schema into checks, and its references into checks that are looked up when used."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.referred: dict[str, Check | None] = {}

    def compile(self, schema: Any, where: str) -> Check:
        """The check of one schema; `where` is said when the schema is broken."""
        if schema is True:
            return anything
        if schema is False:
            return lambda value: [("", "nothing is allowed here")]
        if not isinstance(schema, dict):
            raise broken(where, "must be an object or a boolean")
        values = [
            build(schema, f"{where}/{keyword}")
            for keyword, build in VALUE_KEYWORDS.items()
            if keyword in schema
        ]
        parts = [
            build(self, schema, f"{where}/{keyword}")
            for keyword, build in PART_KEYWORDS.items()
            if keyword in schema
        ]
        return together(values + parts)

    def refer(self, pointer: str) -> Check:
        """A check that finds its schema when it is first used, so that schemas may be recursive."""
        self.referred.setdefault(pointer, None)
        referred = self.referred

        def check(value: Any) -> list[Problem] | None:
            target = referred[pointer]
            assert target is not None  # `finish` has filled it
            return target(value)

        return check

    def finish(self) -> None:
        """Compile what was referred to, and what that refers to, until nothing is left."""
        while waiting := [pointer for pointer, check in self.referred.items() if check is None]:
            for pointer in waiting:
                self.referred[pointer] = self.compile(self._find(pointer), pointer)

    def _find(self, pointer: str) -> Any:
        if pointer != "#" and not pointer.startswith("#/"):
            raise broken(pointer, "only references inside the schema (#/…) can be followed")
        from urllib.parse import unquote  # here, because few schemas refer and it is slow to load

        place = self.root
        for step in pointer.split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(place, dict) and name in place:
                place = place[name]
            elif isinstance(place, list) and name.isdecimal() and int(name) < len(place):
                place = place[int(name)]
            else:
                raise broken(pointer, "the reference leads nowhere")
        return place
