"""The fold of any log is a valid request to every vendor (A1, A8, S5, S7).

Whatever was sent, said, asked, forked, rewound, shortened or left open, and wherever the log ends:
the vendors' own rules, as the fake servers keep them, have nothing against what is sent.
"""

import msgspec
from chronicle import MODEL, Chronicle, chronicles
from hypothesis import given, settings

from bridle.engine.history import fold
from bridle.messages import File, Image, Message, Text, Thinking, ToolCall, Transcript, user
from bridle.protocols.codec import decode_data, encode_data
from bridle.protocols.provider import Request, drain
from bridle.protocols.store import Record
from bridle.providers.anthropic import Anthropic
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.testing.anthropic import FakeAnthropic
from bridle.testing.anthropic_rules import Rules
from bridle.testing.openai import FakeOpenAI
from bridle.testing.openai_rules import ChatRules, ResponsesRules
from rig import SOAK, is_valid, run

many = settings(max_examples=3000 if SOAK else 300)
few = settings(max_examples=300 if SOAK else 70)


def thoughts_of(message):
    """What Anthropic would have issued as this reply."""
    for part in message.parts:
        if isinstance(part, Thinking) and part.meta["api"] == "anthropic":
            meta = part.meta
            if "redacted" in meta:
                yield {"type": "redacted_thinking", "data": meta["redacted"]}
            else:
                sealed = {"signature": meta["signature"]}
                yield {"type": "thinking", "thinking": part.text, **sealed}
        elif isinstance(part, ToolCall):
            yield {"type": "tool_use", "id": part.id}


def items_of(message):
    """What OpenAI would have issued as this reply."""
    for part in message.parts:
        if isinstance(part, Thinking) and part.meta["api"] == "openai":
            summary = [{"type": "summary_text", "text": part.text}] if part.text else []
            named = {"id": part.meta["id"], "encrypted_content": part.meta["encrypted_content"]}
            yield {"type": "reasoning", "summary": summary, **named}
        elif isinstance(part, ToolCall):
            yield {"type": "function_call", "call_id": part.id}


def refusals(chronicle):
    """For each vendor: its adapter, and the rules that remember what was issued in this log."""
    anthropic, responses = Rules(), ResponsesRules()
    for message in chronicle.issued:
        anthropic.remember(list(thoughts_of(message)))
        responses.remember(list(items_of(message)))
    yield Anthropic(MODEL), anthropic
    yield OpenAIResponses(MODEL), responses
    yield OpenAIChat(MODEL), ChatRules()


def sent(transcript):
    """A conversation as it is sent: after a reply, or silence, somebody says something first."""
    last = transcript[-1] if len(transcript) else Message("assistant")
    shows = any(isinstance(part, Image | File) for part in last.parts)
    if last.role == "tool" or (last.role == "user" and (shows or last.content.strip())):
        return transcript
    return transcript.plus(user("go on"))


@many
@given(chronicles)
def test_every_prefix_is_accepted_by_every_vendor(chronicle):
    """Each call answered, once, in place; roles in order; no empty message; sealed thoughts."""
    for provider, rules in refusals(chronicle):
        for found, _ in chronicle.seen:
            whole = sent(found)
            body = provider.encode(Request(whole))
            assert rules.broken_by(msgspec.json.decode(body)) == ""
            if len(whole) % 4 == 0:  # what was encoded bit by bit is what is encoded in one go
                assert body == provider.encode(Request(Transcript(tuple(whole))))


def test_a_conversation_that_begins_with_a_greeting_is_taken_too():
    """Anthropic wants a user's message first."""
    greeting = [Message("assistant", (Text("Hello."),)), user("hi")]
    body = msgspec.json.decode(Anthropic(MODEL).encode(Request(greeting)))
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "user"]
    assert Rules().broken_by(body) == ""


def test_thoughts_go_back_while_results_wait_however_often_the_step_is_steered():
    log = Chronicle()
    log.prompt((Text("go"),), "idle", True)
    log.step("anthropic", ["first this"], ["0"], "found")
    for words in ("left", "no, right"):
        log.prompt((Text(words),), "next_step", True)
    provider, rules = next(refusals(log))
    body = msgspec.json.decode(provider.encode(Request(log.history.transcript)))
    assert [block["type"] for block in body["messages"][1]["content"]] == ["thinking", "tool_use"]
    assert rules.broken_by(body) == ""


def test_a_blank_prompt_which_no_vendor_sees_begins_no_turn():
    """The thoughts before it still belong to the turn in progress."""
    log = Chronicle()
    log.reply("anthropic", None, [""], ["0"], "complete")
    log.turn("anthropic", [], "")
    log.prompt((Text(" "),), "idle", True)
    log.step("anthropic", [], ["0"], "")
    provider, rules = next(refusals(log))
    body = msgspec.json.decode(provider.encode(Request(log.history.transcript)))
    sent_back = [block["type"] for block in body["messages"][1]["content"]]
    assert sent_back == ["redacted_thinking", "tool_use"]
    assert rules.broken_by(body) == ""


@given(chronicles)
def test_growing_is_the_same_as_from_scratch_and_nothing_handed_out_changes(chronicle):
    """No call id is there twice, and no thought is changed (S7)."""
    sealed = [one for message in chronicle.issued for one in thoughts(message)]
    for index, (found, then) in enumerate(chronicle.seen):
        assert is_valid(then)
        assert tuple(found) == then
        ids = [call.id for message in then for call in message.tool_calls]
        assert len(set(ids)) == len(ids)
        assert all(one in sealed for message in then for one in thoughts(message))
        if index % 5 == 0:
            assert tuple(fold(chronicle.records[: index + 1]).transcript) == then
    assert facts(fold(chronicle.records)) == facts(chronicle.history)


def thoughts(message):
    """The thoughts in a message."""
    return [part for part in message.parts if isinstance(part, Thinking)]


FACTS = (
    *("title", "tags", "workspace", "turn", "running", "parked", "metrics", "todos", "pending"),
    *("answers", "grants", "times", "mode", "waiting", "inbox_ids", "open_calls", "transcript"),
)


def facts(history):
    """Everything that a log adds up to."""
    return {name: getattr(history, name) for name in FACTS}


@given(chronicles)
def test_a_log_taken_up_from_a_checkpoint_is_the_whole_log(chronicle):
    """Wherever it is written, and read again as it was written."""
    records, whole = chronicle.records, facts(chronicle.history)
    for index in range(0, len(records), 3):
        if chronicle.foreign[index]:
            continue
        summed = fold(records[: index + 1]).checkpoint("h")
        read = Record(index + 2, "t", decode_data(encode_data(summed)))
        assert read.event == summed
        assert facts(fold([read, *records[index + 1 :]])) == whole
        assert facts(fold([*records[: index + 1], read, *records[index + 1 :]])) == whole


class Anthropics(FakeAnthropic):
    """Anthropic's server, which remembers what was issued in a log."""

    def __init__(self, rules):
        self.rules = rules
        super().__init__(["ok"], loop=True)

    def apis(self):
        (api,) = super().apis()
        api._rules = self.rules
        return (api,)


class OpenAIs(FakeOpenAI):
    """OpenAI's server, which remembers what was issued in a log."""

    def __init__(self, rules):
        self.rules = rules
        super().__init__(["ok"], loop=True)

    def apis(self):
        responses, chat = super().apis()
        responses._rules = self.rules
        return (responses, chat)


async def served(chronicle):
    """What each vendor's server answers to the conversation at the end of the log."""
    (_, sealed), (_, reasoned), _ = refusals(chronicle)
    request = Request(sent(chronicle.history.transcript), system="Be brief.")
    async with Anthropics(sealed) as claude, OpenAIs(reasoned) as gpt:
        key = {"api_key": "k"}
        providers = (
            Anthropic(MODEL, base_url=claude.url, **key),
            OpenAIResponses(MODEL, base_url=gpt.url, **key),
            OpenAIChat(MODEL, base_url=gpt.url, **key),
        )
        said = [(await drain(one.stream(request))).content for one in providers]
        for one in providers:
            await one.close()
        return said


@few
@given(chronicles)
def test_the_servers_answer_it_over_real_sockets(chronicle):
    assert run(served(chronicle)) == ["ok", "ok", "ok"]
