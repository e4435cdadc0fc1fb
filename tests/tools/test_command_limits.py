"""A command has one limit, and what it has written outlives it and an interrupt."""

import re
from pathlib import Path
from typing import Any

import pytest
from early_clock import TIME, out_of_time

import bridle
from bridle.engine.budget import Limits
from bridle.events import ToolOutputDelta
from bridle.providers.scripted import Scripted
from rig import call, results, run


async def turn(root: Path, state: Path, command: dict[str, Any], **rest: Any) -> list[Any]:
    """What the model is told of a command."""
    script = Scripted([call("shell", **command), "done"])
    async with bridle.build_engine(
        script, workspace=root, state=state, mode="auto", **rest
    ) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
        return [text for _, text, _ in results(engine, session.id)]


@pytest.mark.parametrize("level", ["none", "auto"])
def test_the_limit_of_a_call_ends_a_command_with_its_output(
    tmp_path: Path, state: Path, level: str
) -> None:
    """(M6)"""
    root = tmp_path / "work"
    root.mkdir()

    async def scenario() -> list[Any]:
        asked = call("shell", command="echo first; sleep 1000", timeout=500)
        engine = bridle.build_engine(
            Scripted([asked, "done"]),
            workspace=root,
            state=state,
            mode="auto",
            sandbox=level,
            limits=Limits(tool_seconds=TIME),
        )
        async with engine:
            session = await engine.session()
            turn = await session.send("go")
            hear = out_of_time(lambda said: "first" in said)
            async for record in session.subscribe():
                if isinstance(record.event, ToolOutputDelta):
                    hear(record.event)
                    break
            await session.wait(turn)
            return [text for _, text, _ in results(engine, session.id)]

    (said,) = run(scenario())
    ending = r"timed out after [\d.]+ s; the command and its children were ended"  # what was left
    assert re.fullmatch(rf"first\n\[{ending}\]", said), said


@pytest.mark.parametrize(
    ("limit", "longest", "usual"), [(4, 4, 4), (600, 600, 120), (1800, 1800, 120), (0, 3600, 120)]
)
def test_the_limit_of_a_call_is_what_a_command_may_ask_for(
    tmp_path: Path, state: Path, limit: float, longest: float, usual: float
) -> None:
    script = Scripted(["done"])
    limits = Limits(tool_seconds=limit)

    async def scenario() -> None:
        async with bridle.build_engine(
            script, workspace=tmp_path, state=state, limits=limits
        ) as engine:
            await engine.run("go")

    run(scenario())
    (request,) = script.requests
    shell = next(tool for tool in request.tools if tool.name == "shell")
    assert shell.parameters["properties"]["timeout"]["description"] == (
        "Seconds (not milliseconds) after which the command is stopped; "
        f"at most {longest}. Default: {usual}."
    )


def test_milliseconds_are_refused_with_the_unit(tmp_path: Path, state: Path) -> None:
    (said,) = run(turn(tmp_path, state, {"command": "true", "timeout": 120_000}))
    assert said == (
        "these arguments are not valid: `timeout`: must be at most 600.0, got 120000 "
        "(Seconds (not milliseconds) after which the command is stopped; at most 600. Default: 120)"
    )


def test_an_interrupt_leaves_what_the_command_had_written(tmp_path: Path, state: Path) -> None:
    async def scenario() -> list[Any]:
        script = Scripted([call("shell", command="echo first; sleep 1000"), "done"])
        async with bridle.build_engine(
            script, workspace=tmp_path, state=state, mode="auto"
        ) as engine:
            session = await engine.session()
            turn = await session.send("go")
            async for record in session.subscribe():
                if isinstance(record.event, ToolOutputDelta):
                    break
            await session.interrupt()
            await session.wait(turn)
            return [text for _, text, _ in results(engine, session.id)]

    (said,) = run(scenario())
    assert said == "interrupted before it finished. What it had written until then:\nfirst\n"
