"""MCP servers over streamable HTTP: tokens, lost sessions, redirects, bodies without end."""

import asyncio

import pytest
from mcp_rig import context_of, look, named, serving
from web_server import web_server

from bridle.errors import ToolError
from bridle.tools.mcp.spec import ServerSpec
from rig import run


def at(web, name="web", **more):
    return ServerSpec(name, url=web.url, identity=web.url, **more)


async def called(source, folder, wanted="mcp__web__echo", **arguments):
    return await named(source, wanted).execute(arguments, context_of(folder))


def test_headers_go_with_every_request_and_what_is_refused_says_why(tmp_path):
    async def work(web):
        headers = {"Authorization": "Bearer s3cret-token"}
        async with serving(tmp_path, at(web, headers=headers), at(web, "bare")) as source:
            await look(source, tmp_path, action="tools", server="web")
            assert (await called(source, tmp_path, text="hi")).text == "echo: hi"
            assert all(one.get("authorization") == headers["Authorization"] for one in web.seen)
            with pytest.raises(ToolError, match="it answered 401: it wants a token"):
                await look(source, tmp_path, action="tools", server="bare")
            with pytest.raises(ToolError) as caught:  # there is no stream, which is no trouble
                await look(source, tmp_path, action="read", server="web", uri="x://y")
            assert caught.value.message == "web failed: it said: resources/read"

    with web_server("locked") as web:
        run(work(web))


def test_a_token_goes_to_no_other_host(tmp_path):
    async def work(web, other):
        web.elsewhere = other.url
        spec = at(web, headers={"Authorization": "Bearer s3cret-token"}, timeout=10)
        async with serving(tmp_path, spec) as source:
            with pytest.raises(ToolError, match="not followed"):
                await look(source, tmp_path, action="tools", server="web")
        assert other.seen == []

    with web_server("fine") as web, web_server("fine") as other:
        run(work(web, other))


@pytest.mark.parametrize("mode", ["gigabyte", "event", "packed"])
def test_a_body_without_end_costs_that_call(tmp_path, mode):
    async def work(web):
        async with serving(tmp_path, at(web)) as source:
            await look(source, tmp_path, action="tools", server="web")
            with pytest.raises(ToolError):
                await called(source, tmp_path)
            web.mode = "fine"
            assert (await called(source, tmp_path, text="on")).text == "echo: on"

    with web_server(mode) as web:
        run(work(web))


def test_a_server_that_ends_every_stream_is_not_listened_to_for_ever(tmp_path):
    async def work(web):
        async with serving(tmp_path, at(web)) as source:
            await look(source, tmp_path, action="tools", server="web")
            while web.listened < 22:  # as often as it is let, and twice in vain
                await called(source, tmp_path, text="x")
            for _ in range(50):
                await called(source, tmp_path, text="x")
            assert web.listened <= 24

    with web_server("restless") as web:
        run(work(web))


def test_a_session_that_the_server_has_forgotten_is_begun_anew(tmp_path):
    async def work(web):
        async with serving(tmp_path, at(web)) as source:
            await look(source, tmp_path, action="tools", server="web")
            web.known.clear()
            assert (await called(source, tmp_path, text="again")).text == "echo: again"
            assert web.state["calls"] == 1

    with web_server("fine") as web:
        run(work(web))


GONE = "web is gone: it has forgotten this session; whether the call had an effect is not known"


def test_a_call_that_was_carried_out_is_not_sent_again_when_our_answer_is_refused(tmp_path):
    async def work(web):
        async with serving(tmp_path, at(web)) as source:
            await look(source, tmp_path, action="tools", server="web")
            with pytest.raises(ToolError) as caught:
                await called(source, tmp_path, text="stays")
            assert (caught.value.message, web.done) == (GONE, ["stays"])

    with web_server("asking") as web:
        run(work(web))


def test_a_call_that_was_refused_is_sent_again_and_the_one_beside_it_is_not(tmp_path):
    async def work(web):
        async with serving(tmp_path, at(web)) as source:
            await look(source, tmp_path, action="tools", server="web")
            stays, goes = await asyncio.gather(
                called(source, tmp_path, text="stays"),
                called(source, tmp_path, text="goes"),
                return_exceptions=True,
            )
            assert (stays.message, web.done) == (GONE, ["stays"])
            assert (goes.text, web.state["calls"]) == ("echo: goes", 1)

    with web_server("restarted") as web:
        run(work(web))


def test_a_server_that_was_restarted_is_connected_again(tmp_path):
    async def work(source):
        await look(source, tmp_path, action="tools", server="web")
        assert (await called(source, tmp_path, text="one")).text == "echo: one"
        return source

    async def whole():
        with web_server("fine") as web:
            port = web.server_port
            async with serving(tmp_path, at(web)) as source:
                await work(source)
                web.stop()
                with pytest.raises(ToolError, match="web is gone"):
                    await called(source, tmp_path, text="two")
                with web_server("fine", port):
                    assert (await called(source, tmp_path, text="three")).text == "echo: three"

    run(whole())
