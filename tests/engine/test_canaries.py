"""Twenty secrets of every shape, said in every way there is: none is written, told or sent on."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from bridle.engine.redaction import MARK
from bridle.errors import ProviderError
from bridle.events import TextDelta, TitleChanged, TurnEnded
from bridle.protocols.codec import decode_data, encode_data
from bridle.protocols.tool import ToolResult
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from rig import Speaking, Thing, call, make_engine, one_turn, results, run, until

BODY = "q7Rm2Xv9Kp4Ls8Tw3Zn6Hc1Yb5Gd0Jf7Ae2Uo9Mi4"
HEX = "9f86d081884c7d659a2feaa0c55ad015"
LINES = "\n".join(f"MIIC{number}{BODY}{HEX}"[:64] for number in range(6))

# What is said, and the part of it that nobody may ever read again.
CANARIES = {
    "anthropic": (f"sk-ant-api03-c01{BODY}-AA", f"c01{BODY}"),
    "openai": (f"sk-proj-c02{BODY}", f"c02{BODY}"),
    "openai, old": (f"sk-c03{BODY}", f"c03{BODY}"),
    "github": (f"ghp_c04{BODY[:33]}", f"c04{BODY[:33]}"),
    "github, by another": (f"gho_c05{BODY[:33]}", f"c05{BODY[:33]}"),
    "github, fine-grained": (f"github_pat_c06{BODY[:19]}_{BODY}", f"c06{BODY[:19]}"),
    "gitlab": (f"glpat-c07{BODY[:17]}", f"c07{BODY[:17]}"),
    "aws id": ("AKIA" + "C08QW3RTY7UIOP2A", "C08QW3RTY7UIOP2A"),
    "aws secret": (f"aws_secret_access_key = c09{BODY[:35]}/+", f"c09{BODY[:35]}"),
    "google": (f"AIzac10{BODY[:32]}", f"c10{BODY[:32]}"),
    "slack": (f"xoxb-1234567890-c11{BODY[:20]}", f"c11{BODY[:20]}"),
    "stripe": (f"sk_live_c12{BODY[:21]}", f"c12{BODY[:21]}"),
    "npm": (f"npm_c13{BODY[:33]}", f"c13{BODY[:33]}"),
    "pypi": (f"pypi-AgEIc14{BODY}", f"c14{BODY}"),
    "hugging face": (f"hf_c15{BODY[:31]}", f"c15{BODY[:31]}"),
    "jwt": (f"eyJhbGci.eyJc16{BODY}.{BODY}".replace("hbGci", "hbGciOiJI"), f"c16{BODY}"),
    "pem": (
        f"-----BEGIN PRIVATE KEY-----\nc17{LINES}\n-----END PRIVATE KEY-----",
        f"MIIC3{BODY}",
    ),
    "bearer": (f"Authorization: Bearer c18{HEX}", f"c18{HEX}"),
    "url": ("postgres://app:c19Tr0ub4dor@db.example:5432/x", "c19Tr0ub4dor"),
    "variable": (f"export DEPLOY_TOKEN=c20{HEX}", f"c20{HEX}"),
    "known": ("a-known-key-c21", "a-known-key-c21"),
    "pattern": ("file ACME-220022 away", "ACME-220022"),
}
ALL = "\n".join(said for said, _ in CANARIES.values())
PARTS = {"secrets": ("a-known-key-c21",), "redact": (r"ACME-\d{6}",)}


def left_in(data):
    """The canaries that can be read there."""
    text = data if isinstance(data, str) else data.decode()
    return [name for name, (_, secret) in CANARIES.items() if secret in text]


async def _told(session):
    found = []
    async with aclosing(session.subscribe()) as records:
        async for record in records:
            found.append(encode_data(record.event))
            if isinstance(record.event, TurnEnded):
                return found
    return found


def test_the_canaries_can_be_found_where_they_are():
    assert left_in(ALL) == list(CANARIES)


def talkative(chunk, ran):
    """A model and tools that say all of them, in pieces of that size."""

    async def use(arguments, context):
        ran.append(arguments)
        return ToolResult.success("used")

    async def tell(arguments, context):
        for place in range(0, len(ALL), chunk):
            context.say(ALL[place : place + chunk])
            await asyncio.sleep(0)
        each = [said for said, _ in CANARIES.values()]
        return ToolResult.success({"all": ALL, "each": each}, text=ALL)

    parameters = {"type": "object", "properties": {"key": {"type": "string"}}}
    replies = [
        {"text": ALL, "chunk": chunk, **call("tell")},
        {"text": "", "chunk": chunk, **call("use", key=ALL)},
        {"text": f"so:\n{ALL}", "thinking": ALL, "chunk": chunk},
        "goodbye",
    ]
    return Scripted(replies), Thing(tell, "tell"), Thing(use, "use", parameters=parameters)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7, 11, 64, 100_000])
def test_no_canary_is_in_log_or_events_or_the_next_request(tmp_path, chunk):
    """In the prompt, in deltas of every size, in arguments, in what tools say and give back."""
    ran = []
    model, *tools = talkative(chunk, ran)
    rest = {**PARTS, "mode": "auto", "small": Scripted([ALL[:70]])}

    async def work():
        store = JsonlStore(tmp_path / "state")
        async with make_engine(model, *tools, store=store, **rest) as engine:
            session = await engine.session()
            watching = asyncio.create_task(_told(session))
            first = await session.wait(await session.send(f"hear this:\n{ALL}"))
            told = await watching
            await session.wait(await session.send("again"))
            return session.log_path, first, told, results(engine, session.id)

    path, first, told, outputs = run(work())
    assert left_in(Path(path).read_bytes()) == []
    assert left_in(b"\n".join(told)) == []
    assert left_in(repr([list(request.messages) for request in model.requests])) == []
    assert len(model.requests) == 4
    assert left_in(repr(first)) == []
    assert first.text.count(MARK) >= len(CANARIES) - 1
    assert ran == []
    assert [failed for _, _, failed in outputs] == [False, True]
    texts = [one.text for one in map(decode_data, told) if isinstance(one, TextDelta)]
    assert MARK in "".join(texts)


@pytest.mark.parametrize("name", CANARIES)
def test_no_canary_is_in_an_error_or_a_title(name):
    said, _ = CANARIES[name]

    async def break_off():
        yield TextDelta("hm")
        raise ProviderError(f"the vendor says: {said}")

    title = Scripted([said])
    engine, found, result = run(one_turn(Speaking(break_off), small=title, **PARTS))
    records = [record.event for record in engine.store.read(found)]
    assert left_in(repr(records)) == []
    assert left_in(repr(result)) == []
    assert left_in(str(result.error)) == []
    assert MARK in result.detail
    assert [one for one in records if isinstance(one, TitleChanged)] or name == "pem"


def test_tokens_are_sent_where_the_person_wants_it_and_known_keys_are_not():
    token, known = f"ghp_{BODY[:36]}", "a-known-key-c21"
    model = Scripted([f"{token} {known}"])

    async def work():
        async with make_engine(model, redact_tokens=False, **PARTS) as engine:
            return await engine.run(f"{token} {known}")

    assert run(work()).text == f"{token} {MARK}"
    assert model.requests[0].messages[0].content == f"{token} {MARK}"


@pytest.mark.parametrize("name", CANARIES)
def test_the_model_that_writes_titles_is_told_no_canary(name):
    said, _ = CANARIES[name]
    small = Scripted(["A title"])

    async def work():
        async with make_engine(["ok"], small=small, **PARTS) as engine:
            session = await engine.session()
            turn = await session.send(f"hear this: {said}")
            await until(session, lambda event: isinstance(event, TitleChanged))
            await session.wait(turn)

    run(work())
    (request,) = small.requests
    assert left_in(repr(list(request.messages))) == []
    assert MARK in request.messages[0].content
