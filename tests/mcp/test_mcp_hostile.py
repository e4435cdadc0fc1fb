"""Servers that hang, die, flood or lie: each costs its own calls, and nothing else (S1)."""

import asyncio
import sys

import pytest
from mcp_rig import context_of, look, named, notes, raw, serving, source_of

from bridle.errors import ToolError
from bridle.events import CallIntended, ToolResultEvent
from bridle.messages import ToolCall
from bridle.policy import Mode, decide, parse_rule
from rig import calls, events, make_engine, results, run


async def called(source, folder, name, said=None, **arguments):
    return await named(source, name).execute(arguments, context_of(folder, said))


def test_a_server_that_hangs_at_its_start_costs_its_deadline_and_not_its_neighbour(tmp_path):
    async def work():
        slow, fine = raw("hang", tmp_path, timeout=0.5), raw("fine", tmp_path)
        async with serving(tmp_path, slow, fine) as source:
            found = await look(source, tmp_path, action="tools", query="again")
            assert found.text.splitlines() == [
                "mcp__fine__echo: says it again",
                "hang cannot be reached: it did not start within 0.5 seconds.",
            ]
            said = await called(source, tmp_path, "mcp__fine__echo", text="hi")
            assert (said.ok, said.text) == (True, "echo: hi")
            with pytest.raises(ToolError, match="tried again in"):  # not at once
                await look(source, tmp_path, action="tools", server="hang")

    run(work())


def test_looks_of_one_step_run_side_by_side_and_none_waits_for_anothers_deadline(tmp_path):
    async def work():
        names = ("one", "two", "three")
        slow = [raw("hang", tmp_path, name, timeout=0.3) for name in names]
        looks = calls(*(("mcp", {"action": "tools", "server": name}) for name in names))
        source = source_of(tmp_path, *slow)
        async with make_engine([looks, "done"], root=tmp_path, sources=(source,)) as engine:
            found = await engine.run("go")
            kinds = (CallIntended, ToolResultEvent)
            order = [one for one in events(engine, found.session_id) if isinstance(one, kinds)]
            return [type(one) for one in order], results(engine, found.session_id)

    order, said = run(work())
    assert order == [CallIntended] * 3 + [ToolResultEvent] * 3  # each is begun before one has ended
    assert {text for _, text, _ in said} == {
        f"{name} cannot be reached: it did not start within 0.3 seconds."
        for name in ("one", "two", "three")
    }


def test_a_server_that_dies_in_a_call_says_so_once_and_is_there_for_the_next(tmp_path):
    async def work():
        async with serving(tmp_path, raw("die", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="die")
            for _ in range(2):
                with pytest.raises(ToolError) as caught:
                    await called(source, tmp_path, "mcp__die__echo")
                assert caught.value.message == (
                    "die is gone: it has ended; its last words: out of luck; "
                    "whether the call had an effect is not known"
                )
        heard = [line for line in notes("die", tmp_path) if '"tools/call"' in line]
        assert len(heard) == 2  # each was sent once

    run(work())


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("gigabyte", "it sent a message of more than 16,777,216 bytes"),
        ("flood", "it sent more messages than anybody could use"),
        ("nag", "it sent more messages than anybody could use"),
    ],
)
def test_a_server_that_says_too_much_is_let_go(tmp_path, mode, why):
    async def work():
        async with serving(tmp_path, raw(mode, tmp_path), raw("fine", tmp_path)) as source:
            await look(source, tmp_path, action="tools", query="again")
            calls = (f"mcp__{mode}__echo", "mcp__fine__echo")
            bad, good = await asyncio.gather(
                *(called(source, tmp_path, name, text="hi") for name in calls),
                return_exceptions=True,
            )
            assert good.text == "echo: hi"
            assert bad.message == (
                f"{mode} is gone: {why}; whether the call had an effect is not known"
            )

    run(work())


def test_lines_that_are_no_messages_are_passed_over(tmp_path):
    async def work():
        async with serving(tmp_path, raw("junk", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="junk")
            found = await called(source, tmp_path, "mcp__junk__echo", text="still here")
            assert (found.ok, found.text) == (True, "echo: still here")

    run(work())


def test_an_answer_without_its_shape_fails_that_call_alone(tmp_path):
    async def work():
        async with serving(tmp_path, raw("shapeless", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="shapeless")
            for _ in range(2):
                with pytest.raises(
                    ToolError, match="shapeless failed: its answer cannot be read: content"
                ):
                    await called(source, tmp_path, "mcp__shapeless__echo")
        assert sum("started" in line for line in notes("shapeless", tmp_path)) == 1

    run(work())


def test_of_two_answers_to_one_request_the_first_counts(tmp_path):
    async def work():
        async with serving(tmp_path, raw("repeat", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="repeat")
            for word in ("one", "two"):
                found = await called(source, tmp_path, "mcp__repeat__echo", text=word)
                assert found.text == f"echo: {word}"

    run(work())


def test_a_list_that_goes_round_in_circles_ends(tmp_path):
    async def work():
        async with serving(tmp_path, raw("circle", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="circle")
            names = [tool.name for tool in source.tools()]
            assert names == ["mcp", "mcp__circle__echo", "mcp__circle__spawn"]

    run(work())


def test_what_would_be_obeyed_or_unseen_is_written_out(tmp_path):
    async def work():
        async with serving(tmp_path, raw("ansi", tmp_path)) as source:
            found = await look(source, tmp_path, action="tools", server="ansi")
            assert "\x1b" not in found.text and "\u202e" not in found.text
            tool = named(source, "mcp__ansi__paint")
            assert tool.description == r"red\x1b[31m and \u202eback"
            assert tool.parameters["properties"] == {
                "a": {"type": "string", "description": r"x\u202ey\x1b[31m"}
            }
            assert [one.name for one in source.tools()][-1] == "mcp__ansi__odd___31m"

    run(work())


@pytest.mark.parametrize("mode", ["ask", "edits"])
def test_what_a_server_says_of_its_own_tools_lowers_no_decision(tmp_path, mode: Mode):
    async def work():
        async with serving(tmp_path, raw("lying", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="lying")
            tool = named(source, "mcp__lying__wipe")
            call = ToolCall("1", tool.name, {})
            verdicts = {
                chosen: decide(call, tool.facts({}), (), chosen).verdict
                for chosen in ("plan", mode, "auto")
            }
            assert verdicts == {"plan": "deny", mode: "ask", "auto": "allow"}
            denied = parse_rule("deny: mcp__lying__*")
            assert decide(call, tool.facts({}), (denied,), "auto").verdict == "deny"
            allowed = parse_rule("allow: mcp__lying__wipe")
            assert decide(call, tool.facts({}), (allowed,), mode).verdict == "allow"
            words = tool.facts({"text": "docs/../../etc/passwd"})
            narrow = parse_rule("allow: mcp__lying__wipe(docs/*)")  # nobody knows how it reads them
            assert decide(call, words, (narrow,), mode).verdict == "ask"
            forbidden = parse_rule("deny: mcp__lying__*(*passwd*)")
            assert decide(call, words, (allowed, forbidden), mode).verdict == "deny"

    run(work())


def test_ten_thousand_tools_are_found_and_not_offered(tmp_path):
    async def work():
        async with serving(tmp_path, raw("many", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="many")
            assert [tool.name for tool in source.tools()] == ["mcp"]
            assert source.tools()[0].description.endswith(
                "- many: 10000 tools, of which 0 are offered; search for others"
            )
            found = await look(source, tmp_path, action="tools", query="paints picture 4711")
            first = found.text.splitlines()[0]
            assert first == "mcp__many__tool_4711: the 4711th; paints picture 4711"
            assert len(source.tools()) <= 16
            said = await called(source, tmp_path, "mcp__many__tool_4711", text="hi")
            assert said.text == "echo: hi"
        async with serving(tmp_path, raw("many", tmp_path)) as again:  # it is remembered
            assert named(again, "mcp__many__tool_4711").description.startswith("the 4711th")

    run(work())


def test_a_server_that_talks_too_much_of_its_tools_is_not_offered_whole(tmp_path):
    async def work():
        async with serving(tmp_path, raw("wordy", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="wordy")
            assert [tool.name for tool in source.tools()] == ["mcp"]
            await look(source, tmp_path, action="tools", query="tool 17")
            size = sum(len(tool.description) for tool in source.tools())
            assert "mcp__wordy__tool_17" in [tool.name for tool in source.tools()]
            assert size < 110_000

    run(work())


def test_a_server_that_ends_with_the_first_question_is_let_alone_for_a_while(tmp_path):
    async def work():
        async with serving(tmp_path, raw("shy", tmp_path)) as source:
            with pytest.raises(ToolError, match="shy cannot be reached: shy is gone"):
                await look(source, tmp_path, action="tools", server="shy")
            with pytest.raises(ToolError, match="tried again in"):
                await look(source, tmp_path, action="tools", server="shy")
        assert sum("started" in line for line in notes("shy", tmp_path)) == 1

    run(work())


def test_without_the_sdk_the_model_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "bridle.tools.mcp.connection", None)

    async def work():
        async with serving(tmp_path, raw("fine", tmp_path)) as source:
            with pytest.raises(ToolError, match=r"pip install 'bridle-agent\[mcp\]'"):
                await look(source, tmp_path, action="tools", server="fine")

    run(work())


def test_a_tool_that_no_vendor_would_take_is_left_out_alone(tmp_path):
    async def work():
        async with serving(tmp_path, raw("schemas", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="schemas")
            assert [tool.name for tool in source.tools()] == ["mcp", "mcp__schemas__good"]
            known = source.servers["schemas"].definitions
            problems = {one.name: bool(one.problem) for one in known.values()}
            bad = ("invalid", "no_object", "no_schema", "remote", "lost", "huge", "deep", "named")
            assert problems == {**dict.fromkeys(bad, True), "good": False}

    run(work())


def test_names_that_would_be_spelled_alike_are_told_apart(tmp_path):
    async def work():
        async with serving(tmp_path, raw("collide", tmp_path)) as source:
            await look(source, tmp_path, action="tools", server="collide")
            described = {tool.description: tool.name for tool in source.tools()[1:4]}
            assert described["second"] == "mcp__collide__a_b"
            assert len(set(described.values())) == 3
            assert all(len(tool.name) <= 64 for tool in source.tools())

    run(work())
