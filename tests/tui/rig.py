"""What the tests of the terminal need: a house of real parts, with a scripted model."""

import json
from contextlib import asynccontextmanager

from bridle.cli.local_backend import LocalBackend
from bridle.cli.setup import Setup


def script(tmp_path, *replies, name="script", **more):
    """A scripted model with these replies: its name for `--model`."""
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps({"replies": list(replies), **more}))
    return f"scripted:{path}"


def workspace_in(tmp_path):
    """The folder to work on; the state folder is set by `conftest.py`."""
    folder = tmp_path / "workspace"
    folder.mkdir(exist_ok=True)
    return folder


def own_house(tmp_path, *replies, **flags):
    """A house in this process, not entered yet. Flags are those of `bridle chat`."""
    folder = workspace_in(tmp_path)
    given = {"workspace": str(folder), "model": script(tmp_path, *replies), **flags}
    return LocalBackend(Setup(given), given, told=[])


@asynccontextmanager
async def entered(house):
    """The same, entered, and left at the end."""
    await house.enter()
    try:
        yield house
    finally:
        await house.leave()


def call(name, **arguments):
    """A scripted reply that asks for one tool."""
    return {"calls": [{"name": name, "arguments": arguments}]}
