"""Calls of tools of real MCP servers: what comes of them, while they run and when they are done."""

import asyncio
import json
import os

import pytest
from mcp_rig import context_of, friendly, is_alive, look, named, notes, raw, serving

from bridle.errors import ToolError
from bridle.events import ToolOutputDelta
from bridle.messages import Image
from bridle.tools.output import output_path, read_lines
from rig import run


async def called(source, folder, wanted, said=None, **arguments):
    return await named(source, wanted).execute(arguments, context_of(folder, said))


async def until(condition, seconds=240.0):
    """Wait until it is so; a test that waits in vain fails."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - it is a file that another process writes
            await asyncio.sleep(0.01)


def test_results_of_every_kind_come_back_as_one_result(tmp_path):
    async def work():
        given = friendly(env={"MINE": "yes"})
        async with serving(tmp_path, given) as source:
            await look(source, tmp_path, action="tools", server="friendly")
            found = await called(source, tmp_path, "mcp__friendly__add", a=1, b=2)
            assert (found.ok, found.text, found.data) == (True, "3", {"result": 3})
            picture = await called(source, tmp_path, "mcp__friendly__picture")
            assert [type(one) for one in picture.media] == [Image]
            assert picture.media[0].media_type == "image/png"
            wrong = await called(source, tmp_path, "mcp__friendly__add", a="x", b=2)
            assert not wrong.ok and "a" in wrong.text

            said: list[object] = []
            counted = await called(source, tmp_path, "mcp__friendly__count", said, to=2)
            assert counted.text == "counted to 2"
            deltas = [one.text for one in said if isinstance(one, ToolOutputDelta)]
            assert deltas == ["1/2 at 1\n", "2/2 at 2\n"]

            long = await called(source, tmp_path, "mcp__friendly__long", lines=20_000)
            assert len(long.text) < 31_000 and "characters are left out here" in long.text
            assert "the whole output is kept: shell_output with id 'call-1'" in long.text
            kept = output_path(str(tmp_path / "session"), "call-1")
            assert read_lines(kept, 15_001, 1) == ["line 15000"]

    run(work())


def test_a_server_knows_its_own_variables_and_none_of_our_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-for-servers")

    async def work():
        async with serving(tmp_path, friendly(env={"MINE": "yes"})) as source:
            await look(source, tmp_path, action="tools", server="friendly")
            told = [
                (await called(source, tmp_path, "mcp__friendly__variable", name=name)).text
                for name in ("MINE", "ANTHROPIC_API_KEY", "HOME")
            ]
            assert told == ["yes", "not set", os.environ["HOME"]]

    run(work())


def test_resources_and_prompts_are_found_and_read(tmp_path):
    async def work():
        async with serving(tmp_path, friendly()) as source:
            found = await look(source, tmp_path, action="resources", server="friendly")
            assert found.text == "note://today: The note of the day."
            read = await look(
                source, tmp_path, action="read", server="friendly", uri="note://today"
            )
            assert read.text == "water the plants"
            prompts = await look(source, tmp_path, action="prompts", server="friendly")
            assert prompts.text == "greet(who): A greeting."
            prompt = await look(
                source,
                tmp_path,
                action="prompt",
                server="friendly",
                name="greet",
                arguments={"who": "Ada"},
            )
            assert prompt.text == "user: Say hello to Ada."
            with pytest.raises(ToolError, match="friendly failed"):
                await look(source, tmp_path, action="read", server="friendly", uri="note://no")

    run(work())


def test_a_look_reads_and_a_resource_asks(tmp_path):
    async def work():
        async with serving(tmp_path, raw("fine", tmp_path)) as source:
            tool = source.tools()[0]
            does = {
                action: tool.facts({"action": action, "server": "fine"}).acts[0].does
                for action in tool.parameters["properties"]["action"]["enum"]
            }
            reads = dict.fromkeys(("servers", "tools", "resources", "prompts"), "reads")
            assert does == {**reads, "read": "changes", "prompt": "changes"}

    run(work())


def test_an_interrupt_cancels_the_request_on_the_server(tmp_path):
    async def work():
        async with serving(tmp_path, raw("wait", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="wait")
            call = asyncio.ensure_future(called(source, tmp_path, "mcp__wait__echo"))
            await until(lambda: any('"tools/call"' in line for line in notes("wait", tmp_path)))
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(
                lambda: any("notifications/cancelled" in line for line in notes("wait", tmp_path))
            )
            assert source.servers["wait"].is_open  # and it is there for the next call

    run(work())


def test_a_server_that_asks_is_told_the_folder_and_nothing_else(tmp_path):
    async def work():
        async with serving(tmp_path, raw("asks", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="asks")
            assert (await called(source, tmp_path, "mcp__asks__echo", text="x")).ok

            def answers():
                heard = [json.loads(line) for line in notes("asks", tmp_path) if line[0] == "{"]
                return {one["id"]: one for one in heard if "method" not in one}

            await until(lambda: len(answers()) == 3)
            found = answers()
        roots = found["mine roots/list"]["result"]["roots"]
        assert [one["uri"] for one in roots] == [tmp_path.as_uri()]
        assert "error" in found["mine sampling/createMessage"]
        assert "error" in found["mine elicitation/create"]

    run(work())


def test_nothing_that_a_server_started_outlives_the_source(tmp_path):
    async def work():
        async with serving(tmp_path, raw("fine", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="fine")
            await called(source, tmp_path, "mcp__fine__spawn")
            return [int(line.split()[1]) for line in notes("fine", tmp_path) if line[0] in "sc"]

    pids = run(work())
    assert len(pids) == 2
    assert [pid for pid in pids if is_alive(pid)] == []


def test_a_program_that_is_not_there_is_named(tmp_path):
    async def work():
        from bridle.tools.mcp.spec import ServerSpec

        gone = ServerSpec("gone", ("no-such-program-here",))
        async with serving(tmp_path, gone) as source:
            with pytest.raises(ToolError) as caught:
                await look(source, tmp_path, action="tools", server="gone")
            assert caught.value.message == (
                "gone cannot be reached: there is no program 'no-such-program-here'."
            )

    run(work())


def test_a_server_that_wants_to_know_something_asks_the_person_of_that_call():
    from bridle.tools.mcp.connection import elicit

    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "default": "Ada"}, "age": {"type": "integer"}},
        "required": ["name"],
    }
    asked = []

    def answering(words):
        async def ask(question):
            asked.append(question)
            return words

        return ask

    async def work():
        said = ['{"age": 7, "evil": 1}', "yes", "no", ""]
        found = [await elicit("form", "Who\x1b?", schema, answering(one)) for one in said]
        assert found == [{"name": "Ada", "age": 7}, {"name": "Ada"}, None, None]
        assert await elicit("form", "Who?", schema, None) is None
        assert asked[0].startswith(r"The MCP server form asks: Who\x1b?")

    run(work())
