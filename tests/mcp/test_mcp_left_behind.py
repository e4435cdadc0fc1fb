"""Nobody is left of an MCP server, also where bridle itself is killed; one from npm works."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from mcp_rig import context_of, is_alive, look, named, notes, serving

from bridle.events import ToolOutputDelta
from bridle.messages import Image
from bridle.tools.mcp.spec import ServerSpec
from node.rig import node, package
from rig import run

HERE = Path(__file__).parent


def test_a_bridle_that_is_killed_leaves_neither_server_nor_child(tmp_path):
    words = [sys.executable, str(HERE / "holder.py"), str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"ready\n"
        pids = [int(line.split()[1]) for line in notes("fine", tmp_path) if line[0] in "sc"]
        assert [is_alive(pid) for pid in pids] == [True, True]
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    until = time.monotonic() + 240
    while any(map(is_alive, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    assert [pid for pid in pids if is_alive(pid)] == []


def test_the_everything_server_from_npm_works(tmp_path):
    program = package("@modelcontextprotocol/server-everything") / "dist" / "index.js"

    async def work():
        spec = ServerSpec(
            "every", (node(), str(program), "stdio"), {"SHOWN": "yes"}, identity="every"
        )
        async with serving(tmp_path, spec) as source:
            await look(source, tmp_path, action="tools", server="every")

            async def called(wanted, said=None, **arguments):
                tool = named(source, f"mcp__every__{wanted}")
                return await tool.execute(arguments, context_of(tmp_path, said))

            echoed = await called("echo", message="hello")
            assert (echoed.ok, echoed.text) == (True, "Echo: hello")
            picture = await called("get-tiny-image")
            assert [type(one) for one in picture.media] == [Image]
            shaped = await called("get-structured-content", location="New York")
            assert sorted(shaped.data) == ["conditions", "humidity", "temperature"]
            told = await called("get-env")
            assert '"SHOWN": "yes"' in told.text and "API_KEY" not in told.text
            said: list[object] = []
            done = await called("trigger-long-running-operation", said, duration=1, steps=2)
            assert done.ok
            assert [one.text for one in said if isinstance(one, ToolOutputDelta)] == [
                "1/2\n",
                "2/2\n",
            ]
            roots = await called("get-roots-list")
            assert tmp_path.as_uri() in roots.text
            prompts = await look(source, tmp_path, action="prompts", server="every")
            assert "simple-prompt" in prompts.text
            resources = await look(source, tmp_path, action="resources", server="every")
            assert "demo://resource/" in resources.text

    run(work())
