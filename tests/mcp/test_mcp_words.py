"""Rules about the words of a call that nobody here understands: none of them slips through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.engine.gate import ForeignTool, facts_of
from bridle.engine.json_schema import compile_schema
from bridle.messages import ToolCall
from bridle.policy import decide, parse_rule
from bridle.protocols.tool import MAX_CHARACTERS, MAX_TEXTS, TOO_MUCH_TEXT, texts_in
from bridle.tools.mcp.pins import Pins
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.servers import McpTool, Servers
from bridle.tools.mcp.spec import ServerSpec
from bridle.tools.mcp.tool import RemoteTool, parse_definition

NAME = "mcp__fs__read"
ALLOW = parse_rule("allow: mcp__fs__*")
DENY = parse_rule("deny: mcp__fs__*(*secret*)")
ASK = parse_rule("ask: mcp__fs__*(*secret*)")
MANY = [f"f{n}" for n in range(MAX_TEXTS + 1)]


def remote():
    definition = parse_definition("read", "reads", {"type": "object"}, compile_schema)
    server = Server(ServerSpec("fs", ("x",)), "/", Pins("", "fs", ""), compile_schema)
    return RemoteTool(NAME, definition, server)


TOOLS = [remote(), ForeignTool(NAME)]


def judged(tool, arguments, *rules, mode="ask"):
    call = ToolCall("c", NAME, arguments)
    return decide(call, facts_of(call, tool), rules, mode)


@pytest.mark.parametrize("tool", TOOLS, ids=["a server's", "another agent's"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "secret.env"},
        {"file_path": "secret.env"},
        {"command": "x", "path": "secret.env"},
        {"paths": ["secret.env", *MANY[:1000]]},
        {"paths": [*MANY[:1000], "secret.env"]},
        {"path": "./" * 2000 + "secret.env"},
        {"files": {"secret.env": "new"}},
        {"a": [{"b": [{"c": "secret.env"}]}]},
        {"paths": ["secret.env", *MANY]},
        {"paths": [*MANY, "secret.env"]},
        {"path": "x" * MAX_CHARACTERS + "secret.env"},
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_word_that_a_rule_forbids_is_forbidden_wherever_it_stands(tool, arguments):
    assert judged(tool, arguments, ALLOW, DENY).verdict == "deny"
    assert judged(tool, arguments, ALLOW, ASK).verdict == "ask"
    assert judged(tool, {"path": "other"}, ALLOW, DENY).verdict != "deny"


@pytest.mark.parametrize("tool", TOOLS, ids=["a server's", "another agent's"])
def test_a_call_with_too_many_words_is_allowed_by_no_rule(tool):
    found = judged(tool, {"paths": MANY}, ALLOW)
    assert (found.verdict, found.reason) == ("ask", TOO_MUCH_TEXT)
    assert judged(tool, {"paths": MANY}, ALLOW, mode="auto").verdict == "deny"
    assert judged(tool, {"paths": MANY[:-1]}, ALLOW).reason != TOO_MUCH_TEXT


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
DEEPER = st.recursive(
    LEAVES, lambda one: st.lists(one) | st.dictionaries(st.text(max_size=3), one), max_leaves=20
)


def texts(value):
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        return set(value) | set().union(*map(texts, value.values()))
    return set().union(*map(texts, value)) if isinstance(value, list) else set()


@given(st.dictionaries(st.text(max_size=3), DEEPER))
def test_every_text_of_the_arguments_is_a_word(arguments):
    words, whole = texts_in(arguments)
    assert whole and sorted(words) == sorted(set().union(*map(texts, arguments.values())))


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ({"action": "prompt", "name": "safe"}, "allow"),
        ({"action": "prompt", "name": "dangerous"}, "ask"),
        ({"action": "prompt", "name": "dangerous", "uri": "safe"}, "deny"),
        ({"action": "read", "name": "safe", "uri": "dangerous"}, "deny"),
        ({"action": "tools", "name": "safe"}, "allow"),
    ],
)
def test_what_is_asked_of_a_server_is_what_was_judged(arguments, verdict):
    tool = McpTool(Servers([]))
    call = ToolCall("c", "mcp", {"server": "fs"} | arguments)
    rule = parse_rule("allow: mcp(prompt fs safe)")
    assert decide(call, facts_of(call, tool), (rule,), "ask").verdict == verdict
