"""`--continue` and `--resume` keep the model and the effort that the session last used."""

import asyncio
import json

from cli_program import Program, records

from bridle.testing import FakeAnthropic

KEY = "key-" + "abcdefghijklmnopqrstuvwxyz"
DEAR, CHEAP = "anthropic/claude-opus-5-5", "anthropic/claude-haiku-4-5"


def asked(bridle: Program, *runs: tuple[str, ...], **environ: str):
    """Run the program so often against one vendor; how each ended, and what the vendor was sent."""

    async def work():
        async with FakeAnthropic(["ok"], loop=True) as server:
            own = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY} | environ
            done = [await asyncio.to_thread(bridle.run, *words, **own) for words in runs]
            return done, [request.body for request in server.requests]

    return asyncio.run(work())


def models(bodies):
    return [body["model"] for body in bodies]


def test_a_session_goes_on_with_its_own_model_unless_a_flag_names_another(bridle: Program):
    first = ("run", "-q", "one", "-m", CHEAP)
    done, bodies = asked(
        bridle,
        first,
        ("run", "-q", "--continue", "two"),
        ("run", "-q", "--continue", "3", "-m", DEAR),
    )
    assert [one.returncode for one in done] == [0, 0, 0], done[-1].stderr
    assert models(bodies) == ["claude-haiku-4-5", "claude-haiku-4-5", "claude-opus-5-5"]
    session = bridle.logs()[0].parent.name
    _, bodies = asked(bridle, ("run", "-q", "--resume", session, "four"))
    assert models(bodies) == ["claude-opus-5-5"]


def test_the_effort_is_kept_too_and_a_flag_wins(bridle: Program):
    done, bodies = asked(
        bridle,
        ("run", "-q", "one", "-m", DEAR, "--effort", "high"),
        ("run", "-q", "--continue", "two"),
        ("run", "-q", "--continue", "three", "--effort", "low"),
        ("run", "-q", "--continue", "four"),
    )
    assert [one.returncode for one in done] == [0] * 4, done[-1].stderr
    starts = [one for one in records(bridle.logs()[0]) if one["type"] == "session_start"]
    assert [one.get("effort") for one in starts] == ["high", "high", "low", "low"]
    told = [json.dumps([body.get("thinking"), body.get("output_config")]) for body in bodies]
    assert told[0] == told[1] != told[2] == told[3]


def test_the_repl_keeps_what_was_chosen_with_a_command(bridle: Program):
    async def work():
        async with FakeAnthropic(["ok"], loop=True) as server:
            own = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
            lines = f"one\n/model {CHEAP}\ntwo\n".encode()
            await asyncio.to_thread(bridle.run, "repl", stdin=lines, **own)
            await asyncio.to_thread(bridle.run, "repl", "--continue", stdin=b"three\n", **own)
            return models(request.body for request in server.requests)

    first, *rest = asyncio.run(work())
    assert first != "claude-haiku-4-5" and rest == ["claude-haiku-4-5"] * 2


def test_going_to_another_session_takes_up_its_model(bridle: Program):
    async def work():
        async with FakeAnthropic(["ok"], loop=True) as server:
            own = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
            await asyncio.to_thread(bridle.run, "run", "-q", "one", "-m", CHEAP, **own)
            session = bridle.logs()[0].parent.name
            lines = f"two\n/resume {session}\nthree\n".encode()
            await asyncio.to_thread(bridle.run, "repl", stdin=lines, **own)
            return models(request.body for request in server.requests)

    cheap, usual, again = asyncio.run(work())
    assert cheap == again == "claude-haiku-4-5" != usual


def test_a_model_that_cannot_be_had_any_more_is_named_and_the_usual_one_goes_on(bridle: Program):
    asked(bridle, ("run", "-q", "one", "-m", CHEAP))
    model = bridle.script("usual")
    done = bridle.run("run", "--continue", "two", BRIDLE_MODEL=model)
    assert (done.returncode, done.stdout) == (0, "usual\n")
    assert (
        f"{CHEAP}, which this session last used, is not available: there is no API key"
        in done.stderr
    )
    assert "scripted/scripted continues the session" in done.stderr
    done = bridle.run("run", "--resume", bridle.logs()[0].parent.name, "x", ANTHROPIC_API_KEY="")
    assert done.returncode == 5


def test_a_session_in_the_background_keeps_them_as_well(bridle: Program):
    """`attach`, the page and every other client take a session up by the same rule."""

    async def work():
        async with FakeAnthropic(["ok"], loop=True) as server:
            own = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
            flags = ("-m", DEAR, "--effort", "high")
            await asyncio.to_thread(bridle.run, "run", "-q", "one", *flags, **own)
            session = bridle.logs()[0].parent.name
            done = await asyncio.to_thread(bridle.run, "attach", session, stdin=b"two\n", **own)
            await asyncio.to_thread(bridle.run, "stop", "--all", **own)
            return done, [request.body for request in server.requests]

    done, (first, second) = asyncio.run(work())
    assert done.returncode == 0, done.stderr
    assert first["model"] == second["model"] == "claude-opus-5-5"
    assert first.get("thinking") == second.get("thinking")
    assert first.get("output_config") == second.get("output_config")
