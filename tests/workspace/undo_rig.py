"""A workspace whose turns are kept, and pictures of it that can be compared."""

import asyncio
import stat
import subprocess
from pathlib import Path

from bridle.messages import ToolCall
from bridle.tools.edit import Edit
from bridle.tools.write import Write
from bridle.workspace.undo.snapshot import Limits
from bridle.workspace.undo.undo import Undo

TOOLS = {"write": Write(), "edit": Edit()}


def picture(root):
    """Everything below a folder: kind and mode, and content or where a link leads."""
    found = {}
    for path in Path(root).rglob("*"):
        name = str(path.relative_to(root))
        if name.partition("/")[0] != ".git":
            found[name] = _seen(path)
    return found


def _seen(path):
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return ("link", str(path.readlink()))
    if stat.S_ISDIR(status.st_mode):
        return ("folder", stat.S_IMODE(status.st_mode))
    if not stat.S_ISREG(status.st_mode):
        return ("special", status.st_mode)
    return ("file", stat.S_IMODE(status.st_mode), path.read_bytes())


HERE = str(Path(__file__).parent)


class Place:
    """A folder to work in, with undo for it."""

    def __init__(self, folder, limits=None, name="workspace"):
        self.root = Path(folder) / name
        self.state = Path(folder) / "state"
        self.root.mkdir(exist_ok=True)
        self.limits = limits or Limits()
        self.undo = self.another()
        self.turn = 0

    def another(self):
        """Undo for the same folder, as another process would have it."""
        return Undo(self.root, self.state, tools=TOOLS, limits=self.limits)

    def put(self, path, data, mode=None):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data if isinstance(data, bytes) else data.encode())
        if mode is not None:
            target.chmod(mode)

    def sh(self, *commands, session="s"):
        """One turn of shell commands, each a call of its own: what was said to have changed."""
        return self.effects(*[lambda one=one: self.run(one) for one in commands], session=session)

    def run(self, command):
        subprocess.run(["/bin/sh", "-ec", command], cwd=self.root, check=True, timeout=240)

    def effects(self, *effects, session="s"):
        """One turn of effects that nobody foresees."""
        calls = [(ToolCall(f"c{at}", "shell"), effect) for at, effect in enumerate(effects)]
        return self.calls(*calls, session=session)

    def calls(self, *calls, session="s"):
        self.turn += 1
        recorder = self.undo.record_turn(session, self.turn)

        async def work():
            return [await one_call(recorder, call, effect) for call, effect in calls]

        return asyncio.run(work())

    def picture(self):
        return picture(self.root)


async def one_call(recorder, call, effect):
    await recorder.before(call)
    effect()
    return await recorder.after(call)


def told(change):
    """The files of an event, as pairs."""
    return [(one.path, one.how) for one in change.files]
