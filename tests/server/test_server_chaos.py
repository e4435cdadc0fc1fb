"""kill -9 of a whole server under load: nothing acknowledged is lost, and nothing is done twice.

It is the real `bridle serve`, with real commands that each leave a file; only the model is played,
by a server of its own that is never killed.
"""

import asyncio
import json
import os
import random
import secrets
import subprocess
from collections import Counter

import aiohttp
import pytest
from chaos_clients import TOKEN, Clients

from bridle.events import (
    ApprovalAnswered,
    CallIntended,
    MessageAdded,
    PromptReceived,
    ToolResultEvent,
    TurnEnded,
)
from bridle.stores.reader import SessionFolder
from bridle.stores.verify import verify
from bridle.testing import FakeAnthropic
from nursery import begun
from rig import SOAK, free_port, seeds

SESSIONS = 3
RULE = "allow: shell(mktemp effects/*)"  # a folder is another thing, so that somebody is asked


def model(body):
    """Two commands that may run, one that asks, and some words; then the turn is over."""
    messages = body["messages"]
    newest = max(at for at, one in enumerate(messages) if _is_prompt(one))
    step = sum(one["role"] == "assistant" for one in messages[newest:])
    if step >= 2:
        return {"text": "That is all that there was to do here. " * 4, "pause": 0.002}
    names = [f"toolu_{secrets.token_hex(8)}" for _ in range(2 - step)]
    lines = [f"mktemp {'-d ' if step else ''}effects/{one}.XXXXXX" for one in names]
    calls = [
        {"name": "shell", "arguments": {"command": line}, "id": name}
        for name, line in zip(names, lines, strict=True)
    ]
    return {"text": "Some words first.", "calls": calls, "pause": 0.002}


def _is_prompt(message):
    said = message["content"]
    kinds = [one["type"] for one in said] if isinstance(said, list) else ["text"]
    return message["role"] == "user" and "tool_result" not in kinds


async def started(folder, port, url):
    """The command, up."""
    token = TOKEN["Authorization"].removeprefix("Bearer ")
    words = ["serve", "--port", port, "--token", token, "--workspace", folder / "work"]
    words += ["--model", "anthropic/claude-x", "--base-url", url, "--rule", RULE]
    home = {"HOME": str(folder), "BRIDLE_STATE": str(folder / "state"), "PATH": os.environ["PATH"]}
    environ = home | {"ANTHROPIC_API_KEY": "sk-none", "LANG": "C.UTF-8"}
    with (folder / "said").open("ab") as said:
        streams = {"stdout": subprocess.DEVNULL, "stderr": said, "cwd": folder}
        process = begun(["bridle", *map(str, words)], environ, big=True, **streams)
    async with aiohttp.ClientSession() as client:
        for _ in range(1000):
            try:
                async with client.get(f"http://127.0.0.1:{port}/api/health") as answer:
                    assert answer.status == 200
                    return process
            except aiohttp.ClientError:
                assert process.poll() is None, (folder / "said").read_text()
                await asyncio.sleep(0.02)
    raise AssertionError("the server did not start")


async def killed(process):
    process.kill()
    await asyncio.to_thread(process.wait)


async def story(folder):
    """Kills at seeded moments, and then the time that is needed to come to an end."""
    (folder / "work" / "effects").mkdir(parents=True)
    vendor = await FakeAnthropic(model).start()
    try:
        return await killing(folder, vendor.url)
    finally:
        await vendor.stop()


async def killing(folder, url):
    port = free_port()
    clients = Clients(port)
    process = await started(folder, port, url)
    await clients.begin(SESSIONS)
    talking = [asyncio.ensure_future(clients.talk(one)) for one in clients.sessions]
    answering = asyncio.ensure_future(clients.say_yes())
    watching = [
        asyncio.ensure_future(clients.follow(f"{name} {number}", name))
        for name in clients.sessions
        for number in range(2)
    ]
    for seed in seeds(100):
        await clients.moved(random.Random(seed).randint(1, 400))
        await killed(process)
        process = await started(folder, port, url)
    clients.over = True
    await asyncio.gather(*talking)
    await at_rest(clients, folder)
    await caught_up(clients, folder)
    for task in (*watching, answering):
        task.cancel()
    await asyncio.wait([*watching, answering])
    assert answering.cancelled()  # it has found nothing strange
    await clients.close()
    await killed(process)
    return clients


async def at_rest(clients, folder):
    """Until every prompt that was received has had its turn."""
    async with asyncio.timeout(600 if SOAK else 120):
        while any(has_work(logged(folder, one)) for one in clients.sessions):  # noqa: ASYNC110 - logs tell nobody
            await asyncio.sleep(0.1)


def has_work(records):
    turns = {one.event.turn for one in of(records, PromptReceived)}
    return turns != {one.event.turn for one in of(records, TurnEnded)}


async def caught_up(clients, folder):
    """Until every stream has told the end of its log."""
    ends = {one: logged(folder, one)[-1].seq for one in clients.sessions}
    async with asyncio.timeout(240):
        while any(  # noqa: ASYNC110 - a stream that stands still tells nobody
            not seen or seen[-1][0] < ends[name.split()[0]] for name, seen in clients.seen.items()
        ):
            await asyncio.sleep(0.02)


def logged(folder, session_id):
    return list(SessionFolder(folder / "state").read(session_id))


def of(records, kind):
    return [one for one in records if isinstance(one.event, kind)]


@pytest.mark.timeout(1800 if SOAK else 300)
def test_after_any_kill_nothing_acknowledged_is_lost_and_no_call_ran_twice(tmp_path):
    clients = asyncio.run(story(tmp_path))
    logs = {name: logged(tmp_path, name) for name in clients.sessions}
    assert len(clients.prompts) >= 10
    assert len(clients.answers) >= 3
    for name, records in logs.items():
        report = verify(tmp_path / "state" / "sessions" / name / "log.jsonl")
        assert [one.seq for one in records] == list(range(1, len(records) + 1)), report
        check_prompts(clients, name, records)
        check_answers(clients, name, records)
    check_effects(tmp_path, logs)
    check_streams(tmp_path, clients)


def check_prompts(clients, name, records):
    """Each that was acknowledged is there once, entered once, and its turn has one end."""
    received = {one.event.content: one for one in of(records, PromptReceived)}
    assert len(received) == len(of(records, PromptReceived))
    entered = Counter(one.event.prompt for one in of(records, MessageAdded))
    ends = Counter(one.event.turn for one in of(records, TurnEnded))
    for session_id, words, turn in clients.prompts.values():
        if session_id == name:
            record = received[words]
            assert (record.event.turn, entered[record.seq], ends[turn]) == (turn, 1, 1)


def check_answers(clients, name, records):
    said = {one.event.shown: one.event for one in of(records, ApprovalAnswered)}
    mine = [shown for shown, session_id in clients.answers.items() if session_id == name]
    assert all(said[shown].allowed for shown in mine)


def check_effects(folder, logs):
    """No call has had its effect twice; those with a good result have had it, unbegun ones not."""
    left = (folder / "work" / "effects").iterdir()
    lines = [one.name.partition(".")[0] for one in left]
    every = [one.event for records in logs.values() for one in records]
    begun = {one.call_id for one in every if isinstance(one, CallIntended)}
    outputs = [one.output for one in every if isinstance(one, ToolResultEvent)]
    good = {one.call_id for one in outputs if not one.is_error}
    assert [line for line, count in Counter(lines).items() if count > 1] == []
    assert good <= set(lines) <= begun
    assert max(Counter(one.call_id for one in outputs).values()) == 1
    assert good


def check_streams(folder, clients):
    """What each stream was told is the log, from its first record to its last."""
    for name, seen in clients.seen.items():
        path = folder / "state" / "sessions" / name.split()[0] / "log.jsonl"
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        assert seen == [(one["seq"], one["data"]) for one in lines[: len(seen)]]
        assert len(seen) == len(lines)
