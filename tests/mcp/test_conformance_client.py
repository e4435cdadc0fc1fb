"""Our MCP client before the official conformance suite, through the drivers beside this file."""

import asyncio
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from conformance_rig import EXPECTED, NEXT, STABLE, conform, expected, failures

from lent import lent
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

SIGNED = {STABLE: ("auth/scope-step-up",), NEXT: ("auth/iss-supported",)}  # the rest in a soak


def words(suite):
    return NEWEST if suite == NEXT else ()


def driver(scenario):
    """The program that does what the scenario is about."""
    if scenario.startswith("auth/"):
        return "conformance_auth.py"
    return "conformance_wanted.py" if scenario in WANTING else "conformance_client.py"


async def judged(suite, scenario, folder, command):
    """What the suite finds of our client in one scenario; an exit code of ours counts as well."""
    line = shlex.join(command(HERE / driver(scenario)))
    given = ("client", "--command", line, "--scenario", scenario, *words(suite))
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
            return await judged(suite, scenario, folder, command)

    with lent(folder) as command:
        return dict(await asyncio.gather(*map(one, scenarios)))


def left_out(suite):
    """The scenarios that do not apply as a whole."""
    groups = yaml.safe_load(EXPECTED.read_text())["client"][suite]
    return {scenario for group in groups for scenario in group.get("scenarios", ())}


def every_name(suite):
    """The scenarios that the suite has for clients."""
    program = package(suite) / "dist" / "index.js"
    said = subprocess.run(
        [node(), program, "list", "--client", *words(suite)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return set(re.findall(r"^  - (\S+)", said, re.MULTILINE))


def signing_in(suite):
    """Those in which one signs in."""
    if not SOAK:
        return SIGNED[suite]
    return sorted(one for one in every_name(suite) - left_out(suite) if one.startswith("auth/"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("suite", [STABLE, NEXT])
def test_the_suite_finds_nothing_but_what_is_written_down(suite, tmp_path):
    found = asyncio.run(every(suite, APPLY[suite], tmp_path))
    assert failures(found) == expected("client", suite)
    assert [name for name, checks in found.items() if "SUCCESS" not in checks.values()] == []


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("suite", [STABLE, NEXT])
def test_the_suite_lets_our_client_sign_in(suite, tmp_path):
    found = asyncio.run(every(suite, signing_in(suite), tmp_path))
    assert failures(found) == set()
    assert [name for name, checks in found.items() if "SUCCESS" not in checks.values()] == []


@pytest.mark.parametrize("suite", [STABLE, NEXT])
def test_every_scenario_is_run_or_has_a_reason_why_not(suite):
    known = every_name(suite)
    others = {name for name in known if not name.startswith("auth/")}
    assert others == set(APPLY[suite])
    assert left_out(suite) | set(SIGNED[suite]) <= known


@pytest.mark.timeout(1200)
@pytest.mark.skipif(not SOAK, reason="it says when the list can be shorter: a look for a soak")
@pytest.mark.parametrize("suite", [STABLE, NEXT])
def test_what_does_not_apply_does_not_pass_either(suite, tmp_path):
    found = asyncio.run(every(suite, left_out(suite), tmp_path))
    passing = {name for name, checks in found.items() if "FAILURE" not in checks.values()}
    assert passing == set()
