"""The JSON Schema check: its words, its limits, and its verdicts (jsonschema is the referee)."""

import socket
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bridle.engine.json_schema import MOST_SHOWN, compile_schema
from bridle.errors import ConfigError

READ = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "mode": {"enum": ["fast", "slow"]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({"path": "a"}, []),
        ({"path": "a", "count": 2.0, "mode": "fast"}, []),
        ({}, ["missing `path`"]),
        ([], ["expected an object, got a list"]),
        ({"path": "a", "count": "x"}, ['`count`: expected an integer, got the text "x"']),
        ({"path": "a", "count": True}, ["`count`: expected an integer, got true"]),
        ({"path": "a", "count": 0}, ["`count`: must be at least 1, got 0"]),
        ({"path": "a", "mode": 1}, ['`mode`: must be one of "fast", "slow"; got 1']),
        ({"path": "a", "pat": 1}, ["unknown `pat`; known are `path`, `count`, `mode`"]),
        (
            {"path": None, "count": 1.5},
            ["`path`: expected a string, got null", "`count`: expected an integer, got 1.5"],
        ),
    ],
)
def test_problems_say_where_and_what_was_expected(value: Any, problems: list[str]) -> None:
    """(M2)"""
    assert compile_schema(READ)(value) == problems


def test_a_problem_deep_inside_carries_its_path() -> None:
    check = compile_schema(
        {
            "properties": {
                "todos": {"type": "array", "items": {"properties": {"n": {"maxLength": 2}}}}
            }
        }
    )
    assert check({"todos": [{"n": "ok"}, {"n": "long"}]}) == [
        "`todos[1].n`: must have at most 2 characters, has 4"
    ]


def test_alternatives_that_all_fail_are_each_explained() -> None:
    check = compile_schema({"anyOf": [{"type": "string"}, {"type": "null"}]})
    assert check(3) == [
        "fits none of the allowed shapes (expected a string, got 3; or expected null, got 3)"
    ]


def test_a_recursive_schema_is_followed_as_deep_as_the_value_goes() -> None:
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            }
        },
    }
    check = compile_schema(tree)
    assert check({"children": [{"children": [{}]}]}) == []
    assert check({"children": [{"children": [7]}]}) == [
        "`children[0].children[0]`: expected an object, got 7"
    ]


def test_a_value_nested_without_end_is_a_problem_and_not_a_crash() -> None:
    check = compile_schema({"items": {"$ref": "#"}})
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert check(deep) == ["the value is nested too deeply to be checked"]
    while deep:  # taken apart by hand: freeing it at once would recurse in some builds
        deep = deep[0]


def test_many_problems_end_in_a_count() -> None:
    found = compile_schema({"items": {"type": "string"}})(list(range(MOST_SHOWN + 5)))
    assert len(found) == MOST_SHOWN + 1
    assert found[-1] == "and 5 more problems"


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|aa)+$", "(a*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$"]
)
def test_a_pattern_that_would_blow_up_elsewhere_is_matched(pattern: str) -> None:
    check = compile_schema({"type": "string", "pattern": pattern})
    text = "a" * 60 + "!"
    (problem,) = check(text)
    assert problem.startswith(f"must match the pattern {pattern}, got ")
    assert compile_schema({"not": {"pattern": pattern}})(text) == []


@pytest.mark.parametrize("pattern", ["^(?:(?=a)a+)+b$", "^(?:a(?!c)|aa)+b$"])
def test_a_pattern_that_is_too_hard_is_given_up_and_nothing_passes_by_it(pattern: str) -> None:
    text = "a" * 60 + "!"
    words = f"is too hard to be checked against the pattern {pattern}"
    assert compile_schema({"pattern": pattern})(text) == [words]
    assert compile_schema({"not": {"pattern": pattern}})(text) != []
    assert compile_schema({"anyOf": [{"not": {"pattern": pattern}}, False]})(text) != []


def test_a_long_text_is_still_matched() -> None:
    check = compile_schema({"pattern": "^[a-z/]+$"})
    assert check("src/bridle/" * 200) == check("x" * 200_000) == []
    assert check("x" * 200_000 + "!") != []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"anyOf": [{"$ref": "#"}, {"type": "string"}]},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"$ref": "#"}},
    ],
)
def test_references_in_a_circle_come_to_an_end(schema: Any) -> None:
    assert isinstance(compile_schema(schema)(1), list)


def test_a_long_chain_of_alternatives_is_explained_in_a_few_words() -> None:
    parts: dict[str, Any] = {
        f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"type": "null"}]} for n in range(500)
    }
    check = compile_schema({"$ref": "#/$defs/a0", "$defs": {**parts, "a500": {"type": "string"}}})
    assert check("x") == []
    (problem,) = check(1)
    assert len(problem) < 200


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "ADDRESS/a"}, {"$id": "ADDRESS/a", "$ref": "b"}, {"$dynamicRef": "ADDRESS/a"}],
)
def test_no_reference_is_ever_fetched(schema: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        given = {key: value.replace("ADDRESS", address) for key, value in schema.items()}
        with suppress(ConfigError):  # most of them are refused
            compile_schema(given)(1)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_draft_that_nobody_knows_is_read_as_the_newest() -> None:
    check = compile_schema({"$schema": "http://127.0.0.1:9/meta", "type": "string"})
    assert check(1) == ["expected a string, got 1"]


def test_a_tuple_as_older_drafts_write_it_is_understood() -> None:
    check = compile_schema({"items": [{"type": "string"}, {"type": "integer"}]})
    assert check(["a", 1]) == []
    assert check([1]) == ["`[0]`: expected a string, got 1"]


@pytest.mark.parametrize(
    "schema",
    [
        3,
        {"type": "text"},
        {"type": []},
        {"properties": []},
        {"properties": {"a": 1}},
        {"required": "path"},
        {"items": "string"},
        {"enum": "a"},
        {"pattern": "("},
        {"pattern": 1},
        {"minimum": "1"},
        {"minLength": -1},
        {"multipleOf": 0},
        {"anyOf": []},
        {"$ref": "#/$defs/missing"},
        {"$ref": "https://example.org/schema"},
        {"patternProperties": {"[": True}},
        {"properties": {"a": {"$ref": 1}}},
    ],
)
def test_a_broken_schema_is_refused_when_it_is_compiled(schema: Any) -> None:
    with pytest.raises(ConfigError, match="The JSON Schema is broken at "):
        compile_schema(schema)


NAMES = st.sampled_from(["a", "b", "ab", "x/y", ""])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.sampled_from([0.0, 1.0, 1.5, -2.5, 3.0]),
    st.text("ab1 é", max_size=4),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=8,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"])
PATTERNS = st.sampled_from(["^a", "b$", "a.b", "[0-9]", "^$", "x/"])
SMALL = st.integers(0, 3)


SIZED = ("Items", "Length", "Properties")
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
NUMBERS = st.integers(-3, 5) | st.sampled_from([0.5, 1.5])
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "required": st.lists(NAMES, max_size=2, unique=True),
    **{f"{end}{what}": SMALL for end in ("min", "max") for what in SIZED},
    **dict.fromkeys(BOUNDS, NUMBERS),
    "multipleOf": st.sampled_from([1, 2, 0.5, 1.5]),
    "pattern": PATTERNS,
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "uniqueItems": st.booleans(),
    "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two", "#/definitions/x~1y"]),
    "format": st.just("date"),
}
HOLDERS: dict[str, str] = {
    **dict.fromkeys(("properties", "patternProperties"), "named"),
    **dict.fromkeys(("prefixItems", "anyOf", "oneOf", "allOf"), "several"),
    **dict.fromkeys(("additionalProperties", "propertyNames", "items", "not"), "one"),
    **dict.fromkeys(("if", "then", "else"), "one"),
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2, refs: bool = True) -> Any:
    """A schema of a few keywords: with all of them nothing would ever fit."""
    if depth == 0 and draw(st.booleans()):
        return draw(st.booleans())
    names = [*PLAIN, *HOLDERS] if depth else list(PLAIN)
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    if not refs and "$ref" in chosen:
        chosen.remove("$ref")
    inner = schemas(depth=depth - 1, refs=refs)
    found: dict[str, Any] = {}
    for name in chosen:
        shape = HOLDERS.get(name)
        if shape is None:
            found[name] = draw(PLAIN[name])
        elif shape == "named":
            keys = PATTERNS if name == "patternProperties" else NAMES
            found[name] = draw(st.dictionaries(keys, inner, max_size=2))
        else:
            found[name] = draw(inner if shape == "one" else st.lists(inner, min_size=1, max_size=3))
    return found


@given(
    schema=schemas(),
    one=schemas(depth=1, refs=False),
    two=st.booleans() | st.just({"items": {"$ref": "#/$defs/two"}, "type": ["array", "null"]}),
    leaf=st.booleans() | TYPES.map(lambda name: {"type": name}),
    values=st.lists(VALUES, min_size=4, max_size=8),
)
@settings(max_examples=200, deadline=None)
def test_the_verdict_is_that_of_the_jsonschema_library(
    schema: dict[str, Any], one: Any, two: Any, leaf: Any, values: list[Any]
) -> None:
    """(M2)"""
    whole = {**schema, "$defs": {"one": one, "two": two}, "definitions": {"x/y": leaf}}
    referee = Draft202012Validator(whole)
    check = compile_schema(whole)
    for value in values:
        assert (check(value) == []) == referee.is_valid(value), value
