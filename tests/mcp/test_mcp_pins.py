"""What a server says of its tools is remembered; where that changes, a person is asked again."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_rig import look, named, notes, raw, serving, source_of

from bridle.config.mcp import NAME
from bridle.engine.json_schema import compile_schema
from bridle.events import ApprovalAsked
from bridle.policy import parse_rule
from bridle.protocols.session import Answer
from bridle.tools.mcp.tool import parse_definition, tool_names
from rig import call, events, make_engine, results, run

NOT_RUN = (
    "Not run: changed describes this tool differently than before. "
    "If it is still what you want, call it again: a person is asked, and told why."
)
CHANGED = (
    "what changed says about read_note has changed: its description is different: "
    "'reads a note and sends it away'; it takes to now"
)
NEW = "changed did not have extra when its tools were accepted"


def test_what_is_known_is_offered_without_starting_anything(tmp_path):
    async def work():
        async with serving(tmp_path, raw("fine", tmp_path)) as source:
            assert [tool.name for tool in source.tools()] == ["mcp"]
            await look(source, tmp_path, action="tools", server="fine")
            before = [tool.name for tool in source.tools()]
        assert before == ["mcp", "mcp__fine__echo", "mcp__fine__spawn"]
        async with serving(tmp_path, raw("fine", tmp_path)) as again:
            assert [tool.name for tool in again.tools()] == before
        assert sum("started" in line for line in notes("fine", tmp_path)) == 1

    run(work())


def test_another_command_is_another_server(tmp_path):
    from msgspec.structs import replace

    async def work():
        spec = raw("fine", tmp_path)
        async with serving(tmp_path, spec) as source:
            await look(source, tmp_path, action="tools", server="fine")
        async with serving(tmp_path, replace(spec, identity="written otherwise")) as again:
            assert [tool.name for tool in again.tools()] == ["mcp"]

    run(work())


def test_a_definition_that_changed_asks_again_and_says_what_changed(tmp_path):
    """A rule that allowed the tool does not allow what it has become; a person does."""
    source = source_of(tmp_path, raw("changed", tmp_path))
    asked: list[ApprovalAsked] = []

    async def approve(question):
        asked.append(question)
        return Answer(True)

    async def work():
        await look(source, tmp_path, action="tools", server="changed")
        script = [
            call("mcp__changed__read_note", text="1"),
            call("mcp__changed__read_note", text="2"),
            call("mcp__changed__read_note", text="3", to="them"),
            call("mcp__changed__read_note", text="4", to="them"),
            call("mcp__changed__extra", text="5"),
            {"text": "done"},
        ]
        allow = (parse_rule("allow: mcp__changed__*"),)
        engine = make_engine(
            script, root=tmp_path, sources=(source,), rules=allow, approver=approve
        )
        async with engine:
            found = await engine.run("go")
            return [text for _, text, _ in results(engine, found.session_id)]

    texts = run(work())
    assert texts == ["echo: 1", NOT_RUN, "echo: 3", "echo: 4", "echo: 5"]
    assert [one.reason for one in asked] == [CHANGED, NEW]


def test_nobody_but_a_person_accepts_a_change(tmp_path):
    """With --yes, and where nobody is there, what changed does not run."""

    async def work():
        source = source_of(tmp_path, raw("changed", tmp_path))
        await look(source, tmp_path, action="tools", server="changed")
        again = call("mcp__changed__read_note", text="x")
        script = [again, again, again, {"text": "done"}]
        async with make_engine(script, root=tmp_path, sources=(source,), mode="auto") as engine:
            found = await engine.run("go")
            return [text for _, text, _ in results(engine, found.session_id)]

    texts = run(work())
    assert texts[0] == "echo: x"
    assert texts[2].startswith("not run: what changed says about read_note has changed")
    assert texts[2].endswith("only a person may allow that")


def test_the_tools_of_a_server_are_offered_from_the_step_after_the_look(tmp_path):
    offered: list[list[str]] = []

    async def work():
        from bridle.providers.scripted import Scripted

        model = Scripted(
            [
                call("mcp", action="tools", server="fine"),
                call("mcp__fine__echo", text="hi"),
                {"text": "done"},
            ]
        )
        stream = model.stream

        def listening(request):
            offered.append([tool.name for tool in request.tools])
            return stream(request)

        model.stream = listening
        source = source_of(tmp_path, raw("fine", tmp_path))
        allow = (parse_rule("allow: mcp__fine__echo"),)
        async with make_engine(model, root=tmp_path, sources=(source,), rules=allow) as engine:
            found = await engine.run("go")
            return [text for _, text, _ in results(engine, found.session_id)]

    texts = run(work())
    assert texts[1] == "echo: hi"
    known = ["mcp", "mcp__fine__echo", "mcp__fine__spawn"]
    assert offered == [["mcp"], known, known]


def test_calls_ask_rules_decide_and_arguments_are_checked(tmp_path):
    async def work():
        source = source_of(tmp_path, raw("fine", tmp_path))
        await look(source, tmp_path, action="tools", server="fine")
        script = [
            call("mcp__fine__echo", text="x"),
            call("mcp__fine__spawn"),
            call("mcp__fine__echo", text=7),
            {"text": "done"},
        ]
        rules = (parse_rule("deny: mcp__fine__sp*"),)
        async with make_engine(script, root=tmp_path, sources=(source,), rules=rules) as engine:
            found = await engine.run("go")
            return [text for _, text, _ in results(engine, found.session_id)]

    texts = run(work())
    assert texts[0].startswith("not run")  # it asks, and nobody is there
    assert texts[1] == "not run: a rule forbids it"
    assert texts[2].startswith("these arguments are not valid: `text`")


def test_two_sessions_share_one_server_and_the_engine_ends_it(tmp_path):
    async def work():
        source = source_of(tmp_path, raw("fine", tmp_path))
        await look(source, tmp_path, action="tools", server="fine")
        script = [call("mcp__fine__echo", text="x"), {"text": "done"}] * 2
        async with make_engine(script, root=tmp_path, sources=(source,), mode="auto") as engine:
            first, second = await asyncio.gather(engine.run("go"), engine.run("go"))
            assert (first.reason, second.reason) == ("done", "done")
            assert source.servers["fine"].is_open
        assert not source.servers["fine"].is_open
        assert sum("started" in line for line in notes("fine", tmp_path)) == 1

    run(work())


def test_a_call_that_was_parked_runs_in_another_process_once_it_is_allowed(tmp_path):
    """The tool is known there before its server is: from what was pinned."""
    from bridle.stores.jsonl import JsonlStore

    async def work():
        first = source_of(tmp_path, raw("fine", tmp_path))
        await look(first, tmp_path, action="tools", server="fine")
        given = {"root": tmp_path, "on_ask": "park"}
        script = [call("mcp__fine__echo", text="later")]
        store = JsonlStore(tmp_path / "state")
        async with make_engine(script, sources=(first,), store=store, **given) as engine:
            parked = await engine.run("go")
            [asked] = events(engine, parked.session_id, ApprovalAsked)
        second = source_of(tmp_path, raw("fine", tmp_path))
        store = JsonlStore(tmp_path / "state")
        async with make_engine(["done"], sources=(second,), store=store, **given) as engine:
            session = await engine.session(parked.session_id)
            await session.answer(asked.call.id, Answer(True), shown=asked.shown, by="me")
            ended = await session.wait(1)
            return parked.reason, ended.reason, results(engine, parked.session_id)

    before, after, found = run(work())
    assert (before, after) == ("parked", "done")
    assert [text for _, text, _ in found] == ["echo: later"]
    assert sum("started" in line for line in notes("fine", tmp_path)) == 2


@pytest.mark.parametrize("name", ["", "a__b", "_a", "a_", "a b", "ü", "x" * 33])
def test_a_server_is_not_called_so(name):
    assert not NAME.fullmatch(name)


@given(st.sets(st.text(max_size=90), max_size=30))
def test_no_two_tools_are_spelled_alike(tools):
    found = tool_names("server", tools)
    assert set(found) == tools
    assert len(set(found.values())) == len(tools)
    for tool, name in found.items():
        assert 0 < len(name) <= 64
        assert all(char.isascii() and (char.isalnum() or char in "_-") for char in name)
        assert name.startswith("mcp__server__")
        assert name == f"mcp__server__{tool}" or name.removeprefix("mcp__server__") != tool


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
_SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={"properties": _JSON, "required": _JSON, "$defs": _JSON, "anyOf": _JSON},
)


@given(st.text(), st.text(), _JSON | _SCHEMAS)
def test_whatever_a_server_says_of_a_tool_it_is_fit_to_be_shown_or_left_out(name, said, schema):
    from bridle.workspace.text import neutral

    found = parse_definition(name, said, schema, compile_schema)
    assert neutral(found.description) == found.description
    if not found.problem:
        assert found.parameters["type"] == "object"
        compile_schema(found.parameters)
    assert parse_definition(name, said, schema, compile_schema).digest == found.digest


def test_a_tool_of_a_source_never_takes_the_place_of_our_own(tmp_path):
    def mcp(action: str) -> str:
        """Ours."""
        return "ours"

    async def work():
        source = source_of(tmp_path, raw("fine", tmp_path))
        script = [call("mcp", action="tools"), {"text": "done"}]
        engine = make_engine(script, mcp, root=tmp_path, sources=(source,), mode="auto")
        async with engine:
            found = await engine.run("go")
            assert [text for _, text, _ in results(engine, found.session_id)] == ["ours"]
        assert named(source, "mcp").description.startswith("Shows the MCP servers")

    run(work())
