"""One prompt, one turn, one result: `Engine.run`, which goes on from messages of elsewhere."""

from bridle.events import MessageAdded
from bridle.messages import Message, Text, ToolCall, ToolOutput, user
from bridle.protocols.provider import ProviderInfo
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import tool
from rig import call, conversation, events, is_valid, make_engine, run


@tool(read_only=True)
async def look(n: int) -> str:
    """Look."""
    return "k" * n


def test_run_goes_on_from_earlier_messages(tmp_path):
    """A1: run(prompt, messages) streams, runs tools, logs everything, stops on completion."""

    async def story():
        before = [user("my name is Ada"), Message("assistant", (Text("Hello, Ada."),))]
        replies = [call("look", n=3), "It is three, Ada."]
        async with make_engine(replies, look, store=JsonlStore(tmp_path)) as engine:
            result = await engine.run("how many?", before)
            return result, conversation(engine, result.session_id)

    result, said = run(story())
    assert (result.text, result.reason) == ("It is three, Ada.", "done")
    assert said == [
        ("user", "my name is Ada"),
        ("assistant", "Hello, Ada."),
        ("user", "how many?"),
        ("assistant", ""),
        ("assistant", "It is three, Ada."),
    ]


def test_a_long_conversation_is_sent_in_bounds_and_kept_whole(tmp_path):
    """S5: what is sent and held is bounded; the log keeps every message; no call loses its result.

    A1: also when the messages come from elsewhere.
    """

    async def story():
        before = [message for n in range(150) for message in exchange(n)]
        model = Scripted(["noted"], info=ProviderInfo("scripted", "m", context_window=8000))
        async with make_engine(model, look, store=JsonlStore(tmp_path)) as engine:
            result = await engine.run("and now?", before)
            kept = events(engine, result.session_id, MessageAdded)
            return result.reason, model.requests[-1].messages, len(kept), len(before)

    reason, asked, kept, count = run(story())
    assert (reason, kept) == ("done", count + 1)
    assert 1 < len(asked) < count / 2
    assert is_valid(asked)
    assert asked[-1].content == "and now?"


def exchange(n):
    """A question, a call, its result, an answer."""
    yield user(f"question {n} " + "word " * 40)
    yield Message("assistant", (ToolCall(f"c{n}", "look", {"n": n}),))
    yield Message("tool", (ToolOutput(f"c{n}", "k" * 100),))
    yield Message("assistant", (Text(f"answer {n} " + "word " * 40),))
