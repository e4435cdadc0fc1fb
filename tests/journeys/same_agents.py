"""Five who can carry the same story: our loop, LoopAgent, Claude Code, an ACP program, Replacer.

Each is brought to say and do the same for the same prompts: `a.txt one two` looks at the file,
edits it behind a question and says so; any other prompt says what the word was before. `Runner` is
somebody's agent that runs a command, for those that are killed meanwhile.

As a program (`same_agents.py KIND FOLDER PROMPT MODE`) it carries one turn, and says when a person
is asked and when a call is about to run.
"""

import asyncio
import importlib.util
import json
import sys
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import bridle
from bridle.agents.acp import AcpAgent
from bridle.agents.base import AgentResponse
from bridle.agents.claude_code import ClaudeCodeAgent, ClaudeCodeConfig
from bridle.agents.loop import LoopAgent
from bridle.events import ApprovalAsked, CallIntended
from bridle.testing import KEY, FakeAnthropic, Scripted

QUICK = Path(__file__).parent.parent / "agents" / "quick_acp.py"

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_agent.py"
EDIT, ASK, RUN = "a.txt one two", "and before?", "run"
LOOK, WILL, DID, WAS = "Let me look.", "I will edit it.", "Edited.", "It was one."


@asynccontextmanager
async def engine_of(kind, folder, prompt=EDIT, **options):
    """An engine of real parts over `folder/work`, whose turns that kind of agent carries."""
    root, state = folder / "work", folder / "state"
    given = {"workspace": root, "state": state, "sandbox": "none", **options}
    async with (
        _KINDS[kind](folder, root, prompt) as found,
        bridle.build_engine(**found, **given) as engine,
    ):
        yield engine


def replies(prompt, names, **edit):
    """What a model says for that prompt, in the names of somebody's tools."""
    read, change, shell = names
    if prompt.startswith(RUN):
        return [{"text": LOOK, "calls": [{"name": shell, "arguments": command(prompt)}]}]
    if prompt != EDIT:
        return [{"text": WAS}]
    path = next(iter(edit.items()))
    return [
        {"text": LOOK, "calls": [{"name": read, "arguments": dict([path])}]},
        {"text": WILL, "calls": [{"name": change, "arguments": edit}]},
        {"text": DID},
    ]


def command(prompt):
    """A command that leaves a mark and then takes a while: `run SECONDS`."""
    return {"command": f"echo once >> ran.txt; sleep {prompt.split()[1]}"}


def model(prompt):
    return Scripted(replies(prompt, ("read", "edit", "shell"), path="a.txt", old="one", new="two"))


@asynccontextmanager
async def plain(folder, root, prompt):
    yield {"provider": model(prompt)}


@asynccontextmanager
async def loop(folder, root, prompt):
    async with bridle.build_engine(
        model(prompt), workspace=root, state=folder / "inner", sandbox="none"
    ) as engine:
        yield {"agent": LoopAgent(engine)}


@asynccontextmanager
async def claude(folder, root, prompt):
    path = str(root / "a.txt")
    names = ("Read", "Edit", "Bash")
    said = replies(prompt, names, file_path=path, old_string="one", new_string="two")
    home = folder / "home"
    home.mkdir(exist_ok=True)
    async with FakeAnthropic(said) as server:
        env = {
            "ANTHROPIC_BASE_URL": server.url,
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / "claude"),
            "CLAUDE_CODE_TMPDIR": str(home),
        }
        yield {"agent": ClaudeCodeAgent(ClaudeCodeConfig(env=env, api_key=KEY))}


@asynccontextmanager
async def acp(folder, root, prompt):
    path, place = str(root / "a.txt"), folder / "script.json"
    call = {"id": "e1", "kind": "edit", "diffs": [{"path": path, "old": "one", "new": "two"}]}
    then = [
        {"put": {"path": path, "content": "two\n"}},
        {"update": {"id": "e1", "status": "completed", "text": "edited"}},
        {"say": DID},
    ]
    story = [{"say": LOOK}, {"read": {"path": path}}, {"say": WILL}, {"ask": call, "then": then}]
    if prompt.startswith(RUN):
        asked = {"id": "r1", "kind": "execute", "input": command(prompt)}
        story = [{"say": LOOK}, {"ask": asked, "then": []}]
    able = {"load": True, "remember": str(folder / "remembered.json")}
    place.write_text(json.dumps({"agent": able, "turns": [story, [{"say": WAS}]]}))
    yield {"agent": AcpAgent([sys.executable, str(QUICK), str(place)])}


@asynccontextmanager
async def own(folder, root, prompt):
    """The agent of the guide."""
    spec = importlib.util.spec_from_file_location("own_agent", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield {"agent": module.Replacer()}


class Runner:
    """Runs a command with our shell."""

    async def execute(self, prompt, session, *, on_text_chunk, **_):
        if not prompt.startswith(RUN):
            return AgentResponse(WAS)
        await on_text_chunk(LOOK)
        return AgentResponse((await session.call("shell", command(prompt))).text)

    async def cancel(self, session_id): ...
    async def shutdown(self): ...


@asynccontextmanager
async def runner(folder, root, prompt):
    yield {"agent": Runner()}


_KINDS = {"plain": plain, "loop": loop, "claude": claude, "acp": acp, "own": own, "runner": runner}


async def carry(kind, folder, prompt, mode):
    """One turn, told line by line."""
    async with engine_of(kind, Path(folder), prompt, on_ask="wait", mode=mode) as engine:
        session = await engine.session()
        await session.send(prompt)
        async with aclosing(session.subscribe()) as records:
            async for record in records:
                if isinstance(record.event, ApprovalAsked | CallIntended):
                    print(session.id, flush=True)  # noqa: T201 - the test waits for this line
                    break
        await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(carry(*sys.argv[1:]))
