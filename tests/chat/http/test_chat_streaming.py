"""A reply of a model is shown while the model writes it, and what was shown is what is kept."""

import asyncio

import pytest
from rig_chat import chat

from bridle.chat import ChatApp, ServiceLimits
from bridle.chat.limits import RunLimits
from bridle.chat.reply_filter import FilterFacts, ReplyStream, may_show_early
from bridle.providers.anthropic import Anthropic
from bridle.providers.retry import Retrying
from bridle.testing import FakeAnthropic

LIMITS = ServiceLimits(messages_a_minute=0)


def served_by(vendor, database, **limits):
    """A chat whose model is Anthropic's, at the fake's address."""
    model = Anthropic("claude-test", api_key="sk-1", base_url=vendor.url)
    provider = Retrying(model)
    provider = Retrying(model)
    run_limits = RunLimits(**limits)
    return ChatApp(
        database=database, provider=provider, run_limits=run_limits, service_limits=LIMITS
    )


def streamed(database, script, *messages, **limits):
    """The events of each message, sent as one conversation, and what is kept of the last reply."""

    async def work():
        async with (
            FakeAnthropic(script) as vendor,
            chat(None, app=served_by(vendor, database, **limits)) as there,
        ):
            place, found = None, []
            for message in messages:
                body = {"message": message} | ({"conversation_id": place} if place else {})
                events = [one async for one in there.events("/api/ana/chat", body)]
                place = events[-1].data["conversation_id"]
                found.append(events)
            page = (await there.get(f"/api/ana/conversations/{place}")).body
            return found, page["messages"][-1]["content"]

    return asyncio.run(work())


def texts(events):
    return [one.data["text"] for one in events if one.name == "text"]


def test_the_first_sentence_comes_before_the_model_has_finished(sqlite_url):
    """The model stops in the middle of its second sentence, and never goes on."""

    async def work():
        reply = {"text": "You have a quiet day. After that you", "pause": 0.05, "silent": True}
        async with (
            FakeAnthropic([reply]) as vendor,
            chat(None, app=served_by(vendor, sqlite_url, max_seconds=4.0)) as there,
        ):
            events = there.events("/api/ana/chat", {"message": "how is my day?"})
            assert (await anext(events)).name == "accepted"
            first = await anext(events)
            assert first.data == {"text": "You have a quiet day."}
            rest = [one async for one in events]
            whole = first.data["text"] + "".join(texts(rest))
            assert whole.startswith("You have a quiet day. That took too long, so I stopped.")
            done = rest[-1].data
            assert (rest[-1].name, done["response"]) == ("done", whole)
            page = (await there.get(f"/api/ana/conversations/{done['conversation_id']}")).body
            assert page["messages"][-1]["content"] == whole

    asyncio.run(work())


def test_what_is_shown_adds_up_to_what_is_kept(sqlite_url):
    words = "Good morning! It looks calm.\n\nWould you like to add something?"
    (events,), kept = streamed(sqlite_url, [{"text": words, "pause": 0.02}], "good morning")
    assert texts(events)[0] == "Good morning!"
    assert len(texts(events)) > 1
    assert "".join(texts(events)) == events[-1].data["response"] == kept == words


def test_what_the_calls_come_to_is_said_by_code_after_what_was_shown(sqlite_url):
    """A sentence before a call stays; what the model says of the call is not shown."""
    calls = [{"name": "add_task", "arguments": {"title": "Buy milk"}}]
    first = {"text": "One moment, please. I will add it. ", "calls": calls, "pause": 0.1}
    script = [first, "Inserted row 7. All done!"]
    (events,), kept = streamed(sqlite_url, script, "add milk")
    assert kept.startswith("One moment, please. ")
    assert kept.endswith(" Got it! Added 'Buy milk' to your list. Anything else?")
    assert "".join(texts(events)) == kept


@pytest.mark.parametrize(
    "words",
    [
        "Done! I deleted task 7. The rest is fine.",
        "I've removed it. Anything else?",
        'Sure. {"success": true}',
        "He eliminado la tarea. ¿Algo más?",
        "The SQL database is fine. See https://evil.example/?u=ana.",
    ],
)
def test_T5_no_claim_and_no_leak_is_shown_early(sqlite_url, words):
    (events,), kept = streamed(sqlite_url, [{"text": words, "chunk": 3}], "delete it")
    shown = "".join(texts(events))
    assert shown == kept
    for wrong in ("deleted", "removed", "eliminado", "task 7", "{", "SQL", "https"):
        assert wrong not in shown


def test_a_model_that_begins_anew_repeats_nothing(sqlite_url):
    cut = {"text": "It is quiet today. You could", "cut": True}
    (events,), kept = streamed(sqlite_url, [cut, "It is quiet today. You could rest."], "hm?")
    assert "".join(texts(events)) == kept == "It is quiet today. You could rest."


def show(pieces, facts=None, longest=250):
    facts = facts or FilterFacts(nouns=("task",))
    sent = []
    stream = ReplyStream(sent.append, lambda t, s: may_show_early(t, s, facts), longest)
    for piece in pieces:
        stream.feed(piece)
    assert "".join(sent) == stream.sent
    return sent, stream


def test_a_sentence_is_sent_once_it_is_complete():
    sent, stream = show(["Hel", "lo. How", " are you", "? Fine", "."])
    assert sent == ["Hello.", " How are you?"]
    assert stream.complete(stream.rest.strip()) == "Hello. How are you? Fine."


@pytest.mark.parametrize(
    "text",
    [
        "1. Buy milk\n2. Call mom\n",
        "- Buy milk\n",
        "```json\n{}\n",
        "Look at task 7. ",
        "This is **very. ",
        "Start with 'Buy milk'. ",
        "\x1b[2J. ",
        "It is " + "very " * 80 + "long. ",
    ],
)
def test_what_later_knowledge_could_change_is_held_back(text):
    facts = FilterFacts(titles=frozenset({"Buy milk", "Call mom"}), nouns=("task",))
    sent, stream = show([text, "And so on. "], facts)
    assert sent == [] and stream.rest == f"{text}And so on. "


def test_sentences_of_other_scripts_end_as_well():
    assert show(["你好。今天很安静。再"])[0] == ["你好。", "今天很安静。"]
    assert show(["مرحبا. كيف حالك؟ أنا"])[0] == ["مرحبا.", " كيف حالك؟"]
