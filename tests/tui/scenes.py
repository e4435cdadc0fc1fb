"""The screens of the terminal, each brought about by the real parts: for snapshots and pictures.

A scene is an async generator of one pause: it opens the app on a house of its own, brings it where
it is to be looked at, and ends it when it is closed.
"""

import json
from contextlib import asynccontextmanager

from bridle.cli.local_backend import LocalBackend
from bridle.cli.setup import Setup
from bridle.cli.start_checks import StartChecks
from bridle.tui.app import BridleApp
from bridle.tui.widgets.composer import PromptInput
from tui.screen_rig import app_at, say, shows, until
from tui.slash_rig import press

GREETING = '"""Greets people."""\n\n\ndef greet(name):\n    return "Hello " + nmae\n'
OLD, NEW = 'return "Hello " + nmae', 'return f"Hello {name}"'
USAGE = {"input_tokens": 4200, "output_tokens": 180}
TODOS = [
    {"content": "find the failing test", "status": "completed"},
    {"content": "mend greet()", "status": "in_progress"},
    {"content": "run the tests", "status": "pending"},
]
PLAN = """# Mend the greeting

1. Correct the name in `greet.py`.
2. Use an f-string, as the rest of the code does.
3. Run `python3 greet.py`.

Nothing else is touched.
"""
ANSWER = """The test failed because of a **misspelt name**. I

- corrected `nmae` to `name`,
- made it an f-string:

```python
def greet(name):
    return f"Hello {name}"
```
"""


def call(name, **arguments):
    return {"calls": [{"name": name, "arguments": arguments}], "usage": USAGE}


READ = call("read", path="greet.py")
EDIT = call("edit", path="greet.py", old=OLD, new=NEW)
RUN = call("shell", command="python3 greet.py && ls -l greet.py")
MENDING = (
    {"thinking": "The name is misspelt.", "text": "I will look at it.", **READ},
    call("todo_write", todos=TODOS),
    EDIT,
    call("shell", command="python3 -B -c 'from greet import greet; print(greet(\"Ann\"))'"),
    {"text": ANSWER, "usage": USAGE},
)


def house_in(folder, *replies, **flags):
    """A house on a small project, with a scripted model that costs something."""
    workspace = folder / "greeter"
    workspace.mkdir()
    (workspace / "greet.py").write_text(GREETING)
    (workspace / "README.md").write_text("# Greeter\n")
    script = folder / "script.json"
    more = {"model": "model-1", "price": {"input": 3, "output": 15}, "context_window": 200_000}
    script.write_text(json.dumps({"replies": list(replies), **more}))
    given = {"workspace": str(workspace), "model": f"scripted:{script}", "sandbox": "none", **flags}
    return LocalBackend(Setup(given), given, told=[])


@asynccontextmanager
async def opened(folder, *replies, theme="dark", size=(80, 24), **flags):
    async with app_at(house_in(folder, *replies, **flags), size, theme=theme) as pilot:
        yield pilot


@asynccontextmanager
async def start(folder, **more):
    async with opened(folder, **more) as pilot:
        yield pilot


@asynccontextmanager
async def talk(folder, **more):
    async with opened(folder, *MENDING, mode="auto", **more) as pilot:
        await say(pilot, "mend the failing test")
        yield pilot


@asynccontextmanager
async def unfolded(folder, **more):
    async with talk(folder, **more) as pilot:
        await pilot.press("ctrl+up", "ctrl+up", "ctrl+o")
        yield pilot


@asynccontextmanager
async def command_asked(folder, **more):
    async with opened(folder, {"text": "I run it.", **RUN}, **more) as pilot:
        await say(pilot, "run it", wait=False)
        await shows(pilot, "Run this command?")
        yield pilot


@asynccontextmanager
async def edit_asked(folder, **more):
    async with opened(folder, READ, EDIT, **more) as pilot:
        await say(pilot, "mend it", wait=False)
        await shows(pilot, "Allow edit to greet.py?")
        yield pilot


@asynccontextmanager
async def plan(folder, **more):
    replies = ({"text": "This is what I would do.", **call("exit_plan_mode", plan=PLAN)},)
    async with opened(folder, *replies, mode="plan", **more) as pilot:
        await say(pilot, "make a plan", wait=False)
        await shows(pilot, "Go ahead with this plan?")
        yield pilot


@asynccontextmanager
async def keys(folder, **more):
    async with opened(folder, **more) as pilot:
        await pilot.press("f1")
        await shows(pilot, "Ctrl+C")
        yield pilot


@asynccontextmanager
async def commands(folder, **more):
    async with opened(folder, **more) as pilot:
        await pilot.press("/")
        await shows(pilot, "/help")
        yield pilot


@asynccontextmanager
async def files(folder, **more):
    async with opened(folder, **more) as pilot:
        await pilot.press(*"see @gre")
        await shows(pilot, "greet.py")
        yield pilot


@asynccontextmanager
async def sessions(folder, **more):
    async with talk(folder, **more) as pilot:
        await say(pilot, "/sessions", wait=False)
        await shows(pilot, "Sessions")
        await shows(pilot, "current · done")
        yield pilot


@asynccontextmanager
async def undo(folder, **more):
    async with talk(folder, **more) as pilot:
        await say(pilot, "/undo", wait=False)
        await shows(pilot, "Undo turn 1")
        yield pilot


@asynccontextmanager
async def failed(folder, **more):
    fault = {"kind": "invalid", "message": "the key was refused", "status": 401}
    async with opened(folder, {"text": "I beg", "error": fault}, **more) as pilot:
        await say(pilot, "hello")
        yield pilot


@asynccontextmanager
async def light(folder, **more):
    async with talk(folder, **{"theme": "light", **more}) as pilot:
        yield pilot


@asynccontextmanager
async def together(folder, **more):
    made = [call("write", path=name, content="x\n")["calls"][0] for name in ("a.txt", "b.txt")]
    async with opened(folder, {"text": "Two files.", "calls": made}, **more) as pilot:
        await say(pilot, "make them", wait=False)
        await shows(pilot, "1 of 2")
        pilot.app.main.approvals.panel._guard._quiet = 0.0
        await until(pilot, lambda: pilot.app.main.approvals.panel.is_armed)
        await pilot.press("a")
        await shows(pilot, "Allow these")
        yield pilot


@asynccontextmanager
async def asked(folder, **more):
    asking = call("ask_user", question="Which greeting?", options=["Hello", "Good morning"])
    async with opened(folder, {"text": "One question first.", **asking}, **more) as pilot:
        await say(pilot, "greet them", wait=False)
        await shows(pilot, "Good morning")
        yield pilot


@asynccontextmanager
async def tray(folder, **more):
    async with opened(folder, {"text": "I run it.", **RUN}, **more) as pilot:
        await say(pilot, "run it", wait=False)
        await shows(pilot, "Run this command?")
        await pilot.app.backend.renew()
        await pilot.app.main.session.rejoin()
        await shows(pilot, "1 approval needed in other sessions")
        await pilot.press("f3")
        await shows(pilot, "Needs your approval")
        await shows(pilot, "python3 greet.py")
        yield pilot


@asynccontextmanager
async def trust(folder, **more):
    async with first_time(folder, **more) as pilot:
        await shows(pilot, "Trust this folder?")
        yield pilot


@asynccontextmanager
async def model(folder, **more):
    async with first_time(folder, **more) as pilot:
        await shows(pilot, "Trust this folder?")
        await press(pilot, "n")
        await shows(pilot, "Which model would you like to use?")
        yield pilot


@asynccontextmanager
async def first_time(folder, size=(80, 24), theme="dark", **flags):
    """Without a key, in a folder that brings files of its own."""
    (folder / "greeter").mkdir()
    (folder / "greeter" / "AGENTS.md").write_text("# Greeter\n\nBe kind to everybody.\n")
    given = {"workspace": str(folder / "greeter"), **flags}
    app = BridleApp(lambda: LocalBackend(Setup(given), given, told=[]), theme=theme)
    app.main.checks = lambda: StartChecks(given)
    async with app.run_test(size=size) as pilot:
        yield pilot
    if app.backend is not None:
        await app.backend.leave()


@asynccontextmanager
async def rewound(folder, **more):
    async with opened(folder, {"text": "Hello."}, {"text": "Gone."}, **more) as pilot:
        await say(pilot, "hello")
        await say(pilot, "and how are you?")
        await say(pilot, "/rewind", wait=False)
        await shows(pilot, "taken back")
        lines = pilot.app.main.query_one(PromptInput)
        await until(pilot, lambda: lines.has_focus and lines.text == "and how are you?")
        yield pilot


SCENES = {
    "start": start,
    "talk": talk,
    "unfolded": unfolded,
    "command-asked": command_asked,
    "edit-asked": edit_asked,
    "plan": plan,
    "keys": keys,
    "commands": commands,
    "files": files,
    "sessions": sessions,
    "undo": undo,
    "failed": failed,
    "light": light,
    "together": together,
    "asked": asked,
    "tray": tray,
    "trust": trust,
    "model": model,
    "rewound": rewound,
}
