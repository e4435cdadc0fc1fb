"""The server's numbers, as Prometheus reads them."""

import re

from rig_server import server, write_note

from bridle.protocols.provider import Price, ProviderInfo
from bridle.providers.scripted import Scripted
from rig import call, run

LINE = re.compile(r'([a-z_]+)(?:\{([a-z]+)="([a-z0-9._+]+)"\})? (-?[0-9.e+]+)')
LABELS = {"version", "direction", "code"}


def parsed(text):
    """Values by name and label; every line has to be one that Prometheus reads."""
    found, kinds = {}, {}
    for line in text.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kinds.setdefault(name, kind) == kind
        elif not line.startswith("# HELP "):
            name, label, value, number = LINE.fullmatch(line).groups()
            assert name in kinds
            assert label is None or label in LABELS
            assert (kinds[name] == "counter") == name.endswith("_total")
            found[f"{name}/{value}" if value else name] = float(number)
    assert text.endswith(b"\n")
    return found


async def numbers(running):
    answer = await running.get("/api/metrics")
    assert (answer.status, answer.headers["content-type"][:10]) == (200, "text/plain")
    return parsed(answer.body)


def priced():
    info = ProviderInfo("scripted", "m", price=Price(input=1.0, output=2.0))
    reply = {"text": "yes", "usage": {"input_tokens": 1000, "output_tokens": 500}}
    return Scripted([reply, call("write_note", text="a"), "done"], info=info)


def test_what_the_server_does_is_counted_and_stays_counted(tmp_path):
    async def work():
        async with server(tmp_path, priced, write_note) as running:
            before = await numbers(running)
            assert (before["bridle_sessions_open"], before["bridle_prompts_total"]) == (0, 0)
            session_id = await running.made()
            path = f"/api/sessions/{session_id}"
            await running.post(f"{path}/chat", {"prompt": "one"})
            await running.until(f"{path}/stream", lambda event: event.name == "completed")
            first = await numbers(running)
            assert first["bridle_sessions_open"] == 1
            assert first["bridle_prompts_total"] == 1
            assert first["bridle_tokens_total/read"] == 1000
            assert first["bridle_tokens_total/written"] == 500
            assert first["bridle_cost_dollars_total"] > 0
            assert first["bridle_records_told_total"] > 0
            await running.room.sessions._sessions.close_one(session_id)
            await running.post(f"{path}/chat", {"prompt": "two"})
            stream = running.events(f"{path}/stream")
            async for event in stream:
                if event.name == "approval_required":
                    break
            second = await numbers(running)
            await stream.aclose()
            assert second["bridle_prompts_total"] == 2  # what was before is not counted again
            assert second["bridle_tokens_total/read"] >= 1000
            assert second["bridle_turns_running"] == 0  # it waits for a person
            assert second["bridle_questions_waiting"] == 1
            assert second["bridle_streams_open"] == 1
            assert second["process_resident_memory_bytes"] > 1 << 20
            assert second["process_cpu_seconds_total"] > 0
            assert second["bridle_uptime_seconds"] > 0

    run(work())


def test_refusals_are_counted_by_their_status_and_by_nothing_that_a_client_chose(tmp_path):
    async def work():
        async with server(tmp_path) as running:
            for name in ("nobody", "nowhere", "../../etc/passwd"):
                await running.get(f"/api/sessions/{name}")
            await running.get("/api/sessions", token="wrong")
            found = await numbers(running)
            errors = {name: value for name, value in found.items() if "errors" in name}
            assert errors == {"bridle_errors_total/401": 1, "bridle_errors_total/404": 3}

    run(work())
