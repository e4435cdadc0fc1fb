"""How a run ends: what is said on standard error, what to do next, and the exit code."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_program import Program

PRICE = {"price": {"input": 1000.0, "output": 1000.0}}
GLOB = {"calls": [{"name": "glob", "arguments": {"pattern": "*"}}]}
SHELL = {"calls": [{"name": "shell", "arguments": {"command": "touch made.txt"}}]}


def reply(text: str, tokens: int = 100, **more: Any) -> dict[str, Any]:
    return {"text": text, "usage": {"input_tokens": tokens, "output_tokens": 10}, **more}


def schema_of(bridle: Program) -> list[str]:
    path = bridle.home / "schema.json"
    path.write_text(json.dumps({"type": "object", "required": ["n"]}))
    return ["--output-schema", str(path)]


@pytest.mark.parametrize(("second", "code"), [('{"n": 5}', 0), ("sorry", 1)])
def test_what_a_repaired_answer_cost_is_counted_with_it(bridle: Program, second: str, code: int):
    model = bridle.script(reply("five"), reply(second), **PRICE)
    done = bridle.run("run", "how many?", "-m", model, *schema_of(bridle))
    assert done.returncode == code
    assert "2 steps · 200 tokens in · 20 out · $0.22" in done.stderr
    assert done.stderr.count("steps ·") == 1


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-steps", "1"], "the limit of 1 step is reached"),
        (["--max-turn-tokens", "9000"], "the limit of 9,000 tokens leaves no room"),
        (["--max-cost", "9"], "the limit of $9.00 leaves no room"),
    ],
)
def test_a_repair_gets_what_the_limits_leave(bridle: Program, flags: list[str], said: str):
    model = bridle.script(reply("five", 8900), reply('{"n": 5}'), **PRICE)
    done = bridle.run("run", "how many?", "-m", model, *schema_of(bridle), *flags)
    assert (done.returncode, done.stdout) == (4, "")
    assert said in done.stderr
    assert "1 step · 8,900 tokens in" in done.stderr


def test_the_time_for_a_repair_is_what_the_answer_left(bridle: Program):
    model = bridle.script(reply("five"), reply('{"n": 5}', delay=600))
    done = bridle.run("run", "how many?", "-m", model, *schema_of(bridle), "--max-seconds", "1")
    assert (done.returncode, done.stdout) == (4, "")
    assert "the limit of 1 second is reached" in done.stderr


def test_tool_calls_of_a_repair_count_too(bridle: Program):
    model = bridle.script(GLOB, "five", GLOB, '{"n": 5}')
    flags = [*schema_of(bridle), "--max-tool-calls", "1"]
    done = bridle.run("run", "how many?", "-m", model, *flags)
    assert (done.returncode, done.stdout) == (4, "")
    assert "the limit of 1 tool call is reached" in done.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-cost", "0.01"], "Give the model a price in the settings"),
        (["--max-turn-tokens", "5"], "Raise the limit: it is too low for a single step."),
    ],
)
def test_a_limit_that_allows_nothing_is_not_gone_on_from(bridle: Program, flags, said: str):
    done = bridle.run("run", "go", "-m", bridle.script("ok"), *flags)
    assert (done.returncode, "--resume" in done.stderr) == (4, False)
    assert f"  → {said}" in done.stderr


def test_a_limit_that_was_used_up_can_be_gone_on_from(bridle: Program):
    done = bridle.run("run", "go", "-m", bridle.script(GLOB, loop=True), "--max-steps", "1")
    assert "  → Continue it: bridle run --resume " in done.stderr


@pytest.mark.parametrize("flags", [[], ["--quiet"], ["--json"]])
def test_a_model_that_declines_fails_the_run(bridle: Program, flags: list[str]):
    model = bridle.script(reply("", stop_reason="refusal", stop_detail="not about that"))
    done = bridle.run("run", "go", "-m", model, *flags)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("bridle:")]
    assert said == ["bridle: the model declined to answer: not about that"]


def test_an_answer_that_was_declined_is_not_asked_for_again(bridle: Program):
    model = bridle.script(reply("no", stop_reason="refusal"))
    done = bridle.run("run", "go", "-m", model, *schema_of(bridle))
    assert (done.returncode, done.stdout) == (1, "")
    assert "bridle: the model declined to answer\n" in done.stderr


def test_an_answer_that_was_cut_is_said_to_be(bridle: Program):
    model = bridle.script(reply("half a sen", stop_reason="max_tokens"), loop=True)
    done = bridle.run("run", "go", "-m", model, "--quiet")
    assert (done.returncode, done.stdout) == (6, "half a senhalf a sen\n")
    assert done.stderr == (
        "bridle: the reply was cut off at its token limit\n"
        "  → Allow longer replies (--max-tokens, max_tokens), or ask for smaller parts.\n"
    )


def test_an_answer_that_was_cut_and_gone_on_with_is_one_answer(bridle: Program):
    model = bridle.script(reply("half a sen", stop_reason="max_tokens"), "tence")
    done = bridle.run("run", "go", "-m", model, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "half a sentence\n", "")


@pytest.mark.parametrize(
    ("mode", "advice"),
    [
        ("ask", "Run it in a terminal, or allow more with --mode edits or --yes."),
        ("edits", "Run it in a terminal, or allow more with --yes."),
    ],
)
def test_nobody_is_told_to_use_the_mode_that_is_used(bridle: Program, mode: str, advice: str):
    done = bridle.run("run", "go", "-m", bridle.script(SHELL, "no"), "--mode", mode)
    assert done.returncode == 3
    assert f"  → {advice}\n" in done.stderr


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (None, "--output-schema takes the path of a file"),
        ("{", "The file must contain one JSON Schema."),
        ("[]", 'Start with {"type": …}.'),
        ('{"type": "nonsense"}', "Fix the schema in that file"),
    ],
)
def test_a_bad_schema_file_comes_with_what_to_do_about_it(bridle: Program, text, advice: str):
    path = bridle.home / "schema.json"
    if text is not None:
        path.write_text(text)
    done = bridle.run("run", "x", "-m", bridle.script("ok"), "--output-schema", str(path))
    assert done.returncode == 2
    assert f"  → {advice}" in done.stderr


@pytest.mark.parametrize("arguments", [["run", "go"], ["run", "go", "--json"], ["config", "show"]])
def test_output_that_cannot_be_written_is_one_plain_line(bridle: Program, arguments: list[str]):
    model = ["-m", bridle.script("ok")] if arguments[0] == "run" else []
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            bridle.command(*arguments, *model),
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=bridle.environ,
            cwd=bridle.workspace,
        )
    assert done.returncode == 1
    assert done.stderr.endswith(
        "bridle: the output cannot be written: the disk is full\n  → Free some space there.\n"
    )
