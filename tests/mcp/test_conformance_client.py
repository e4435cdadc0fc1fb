"""Our MCP client before the official conformance suite, through the drivers beside this file."""

import asyncio
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conformance_rig import EXPECTED, NEXT, STABLE, conform, expected, failures

from node.rig import node, package
from rig import SOAK

HERE = Path(__file__).parent
NEWEST = ("--spec-version", "2026-07-28")
APPLY = {
    STABLE: (
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "auth/resource-mismatch",  # a client that takes no token from there is what is wanted
    ),
    NEXT: (
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ),
}
WANTING = ("http-custom-headers", "json-schema-2020-12-preservation")  # they say which calls


def words(suite):
    return NEWEST if suite == NEXT else ()


async def judged(suite, scenario, folder):
    """What the suite finds of our client in one scenario; an exit code of ours counts as well."""
    driver = HERE / ("conformance_wanted.py" if scenario in WANTING else "conformance_client.py")
    command = shlex.join([sys.executable, str(driver)])
    given = ("client", "--command", command, "--scenario", scenario, *words(suite))
    checks, said = await conform(suite, folder / scenario.replace("/", "-"), *given)
    (found,) = checks.values()
    if "CLIENT EXITED WITH ERROR" in said:
        found["client-exit"] = "FAILURE"
    return scenario, found


async def every(suite, scenarios, folder):
    """So many at a time as a small machine bears."""
    room = asyncio.Semaphore(2)

    async def one(scenario):
        async with room:
            return await judged(suite, scenario, folder)

    return dict(await asyncio.gather(*map(one, scenarios)))


def left_out(suite):
    """The scenarios that do not apply as a whole."""
    groups = yaml.safe_load(EXPECTED.read_text())["client"][suite]
    return {scenario for group in groups for scenario in group.get("scenarios", ())}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("suite", [STABLE, NEXT])
def test_the_suite_finds_nothing_but_what_is_written_down(suite, tmp_path):
    found = asyncio.run(every(suite, APPLY[suite], tmp_path))
    assert failures(found) == expected("client", suite)
    assert [name for name, checks in found.items() if "SUCCESS" not in checks.values()] == []


@pytest.mark.parametrize("suite", [STABLE, NEXT])
def test_every_scenario_is_run_or_has_a_reason_why_not(suite):
    program = package(suite) / "dist" / "index.js"
    said = subprocess.run(
        [node(), program, "list", "--client", *words(suite)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    known = set(re.findall(r"^  - (\S+)", said, re.MULTILINE))
    assert known == set(APPLY[suite]) | left_out(suite)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("suite", [STABLE, NEXT])
def test_what_does_not_apply_does_not_pass_either(suite, tmp_path):
    some = sorted(left_out(suite))[:: 1 if SOAK else 12]  # all of them take minutes to fail
    found = asyncio.run(every(suite, some, tmp_path))
    passing = {name for name, checks in found.items() if "FAILURE" not in checks.values()}
    assert passing == set()
