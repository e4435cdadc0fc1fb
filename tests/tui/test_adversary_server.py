"""A server that answers nonsense, never ends, or sends one elsewhere: the screen stays (S8)."""

import json
import os
from random import Random

import pytest
from aiohttp import web

from bridle.client import Client
from bridle.errors import AgentError
from bridle.tui.remote_backend import RemoteBackend
from rig import SOAK, run
from tui.liar_rig import LINE, Lies, lying, visited
from tui.odd_events import odd_event
from tui.screen_rig import say, seen, shows, until

NONSENSE = {
    "nothing": b"",
    "a list": b"[]",
    "null": b"null",
    "no json": b"<html>",
    "no text": b"\xff\xfe{",
    "deep": b"[" * 100_000,
    "wrong types": json.dumps(
        dict.fromkeys(("id", "sessions", "choices", "lines", "hits", "files", "limits"), 5)
        | {"turn": "one", "seq": [], "approvals": 5, "paths": 7, "messages": 8, "calls": 9}
    ).encode(),
}
COMMANDS = (
    "/sessions",
    "/resume 2026",
    "/new",
    "/fork",
    "/undo",
    "/model",
    "/agent",
    "/mode edits",
    "/tools",
    "/mcp",
    "/policy",
    "/budget",
    "/compact",
    "/doctor",
    "/rename it",
    "/search words",
    "/approvals",
    "a prompt",
)


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_to_any_command_is_told_and_the_screen_stays(kind):
    first = list(NONSENSE).index(kind)  # all with all in a soak; else each has met several kinds

    async def story():
        lies = Lies()
        async with visited(lies) as pilot:
            lies.answers = {"": NONSENSE[kind]}
            for command in COMMANDS if SOAK else COMMANDS[first % 3 :: 3]:
                await say(pilot, command, wait=False)
                count = len(lies.asked)
                await until(pilot, lambda count=count: len(lies.asked) >= count)
                for _ in range(20):
                    await pilot.pause(0.005)
                assert pilot.app.failure is None, command
                while pilot.app.screen is not pilot.app.main:
                    await pilot.press("escape")
                pilot.app.main.composer.load("")
            await shows(pilot, "cannot be read")

    run(story())


def page(count, more="", **values):
    """So many sessions, and where it goes on."""
    many = [{**LINE, "id": f"20260101-000000-{at:06x}", **values} for at in range(count)]
    return json.dumps({"sessions": many, "next": more}).encode()


@pytest.mark.parametrize("count", [0, 1])
def test_pages_without_end_are_turned_no_further(count):
    async def story():
        lies = Lies({"/api/sessions": lambda request: page(count, more="again")})
        async with lying(lies) as url, Client(url, "token") as client:
            house = RemoteBackend(client, await client.session(LINE["id"]))
            assert len(await house.sessions()) <= 200
            with pytest.raises(AgentError):
                await house.resume("nobody")

    run(story())


def test_more_sessions_than_were_asked_for_are_left_out():
    async def story():
        lies = Lies({"/api/sessions": page(100_000)})
        async with visited(lies) as pilot:
            await say(pilot, "/sessions", wait=False)
            await shows(pilot, "Sessions")
            await until(pilot, lambda: pilot.app.screen._found)
            assert len(pilot.app.screen._found) == 200
            await pilot.press("escape")

    run(story())


def test_numbers_that_no_session_has_are_shown_all_the_same():
    values = {"cost": -1e308, "unpriced": -5, "waiting": 2**63, "seq": 3, "updatedAt": "9999-99-99"}
    odd = {
        **values,
        "state": "\x1b[31m",
        "holder": "x" * 5000,
        "updatedAt": "0001-01-01T00:00+14:00",
    }

    async def story():
        lies = Lies({"/api/sessions": page(3, **odd)})
        async with visited(lies, (120, 40)) as pilot:
            await say(pilot, "/sessions", wait=False)
            await shows(pilot, "there")
            assert pilot.app.failure is None
            await pilot.press("escape")

    run(story())


def test_a_list_whose_news_are_refused_stays():
    async def story():
        lies = Lies({"/api/sessions": page(3)})
        async with visited(lies) as pilot:
            lies.answers["/api/events"] = lambda request: web.Response(status=403, body=b"{}")
            await say(pilot, "/sessions", wait=False)
            await shows(pilot, "Sessions")
            await until(pilot, lambda: lies.asked.count("GET /api/events") > 1)
            for _ in range(20):
                await pilot.pause(0.005)
            assert pilot.app.failure is None
            assert "Sessions" in seen(pilot)
            await pilot.press("escape")

    run(story())


def test_what_is_said_to_one_server_goes_to_no_other():
    async def story():
        other, lies = Lies(), Lies()
        async with lying(other) as elsewhere, lying(lies) as url, Client(url, "token") as client:
            session = await client.session(LINE["id"])
            away = {"Location": f"{elsewhere}/stolen"}
            lies.answers[""] = lambda request: web.Response(status=307, headers=away)
            with pytest.raises(AgentError):
                await session.send("a secret")
            with pytest.raises(AgentError):
                await session.export("jsonl")
            assert other.asked == []

    run(story())


SEEDS = range(30) if os.environ.get("BRIDLE_SOAK") else range(3)


@pytest.mark.parametrize("seed", SEEDS)
def test_records_that_no_session_could_have_are_drawn_or_told(seed):
    random = Random(seed)
    events = [one for one in (odd_event(random) for _ in range(120)) if one is not None]

    async def story():
        lies = Lies(events=events)
        async with visited(lies, (100, 30)) as pilot:
            for key in ("ctrl+home", "ctrl+o", "ctrl+t", "pagedown", "ctrl+up", "f2", "ctrl+end"):
                await pilot.press(key)
            await pilot.pause()
            assert pilot.app.failure is None
            assert "\x1b" not in seen(pilot)

    run(story())


def test_a_stream_of_broken_records_is_told_and_the_screen_stays():
    async def story():
        lies = Lies()
        lies.blocks.append(
            b"id: " + b"9" * 5000 + b"\nevent: trace\ndata: " + b"[" * 9000 + b"\n\n"
        )
        async with visited(lies) as pilot:
            assert pilot.app.failure is None
            await say(pilot, "/tools", wait=False)
            await shows(pilot, "no tools")
            await pilot.press("escape")

    run(story())
