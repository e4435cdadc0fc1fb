"""The official conformance suite from npm, run as its authors run it, and what it found.

What does not pass is written in `conformance_expected.yaml`, with the reason. A check that fails
and is not there, and one that is there and passes, is a difference that a test has to show.
"""

import asyncio
import json
import re
from pathlib import Path

import yaml

from node.rig import node, package

EXPECTED = Path(__file__).with_name("conformance_expected.yaml")
STABLE, NEXT = "@modelcontextprotocol/conformance", "conformance-next"
_RANK = {"": 0, "INFO": 1, "SKIPPED": 2, "WARNING": 3, "SUCCESS": 4, "FAILURE": 5}
_FOLDER = re.compile(r"(?:server|client)?-?(.+?)-\d{4}-\d\d-\d\dT[\d-]+Z")


async def conform(suite, folder, *arguments, **environ):
    """Run it with these words; each check of each scenario, and how it came out."""
    program = package(suite) / "dist" / "index.js"
    running = await asyncio.create_subprocess_exec(
        node(),
        str(program),
        *arguments,
        "-o",
        str(folder),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        **environ,
    )
    try:
        said, _ = await running.communicate()
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    return {_name(one.parent): _statuses(one) for one in folder.rglob("checks.json")}, said.decode()


def _name(folder):
    """A scenario may have a `/` in its name; then its folder is in another."""
    return _FOLDER.fullmatch(folder.name)[1]


def _statuses(path):
    """By check; where one is made several times, what failed counts, then what passed."""
    found = {}
    for check in json.loads(path.read_text()):
        known, status = found.get(check["id"], ""), check["status"]
        found[check["id"]] = max(known, status, key=_RANK.get)
    return found


def failures(found):
    """What failed, as `scenario: check`."""
    return {
        f"{scenario}: {check}"
        for scenario, checks in found.items()
        for check, status in checks.items()
        if status == "FAILURE"
    }


def passed(found):
    """The scenarios of which something was tried, and nothing failed."""
    return {
        scenario
        for scenario, checks in found.items()
        if "SUCCESS" in checks.values() and "FAILURE" not in checks.values()
    }


def expected(side, suite):
    """The checks that do not pass, all reasons together."""
    groups = yaml.safe_load(EXPECTED.read_text())[side][suite]
    return {check for group in groups for check in group["checks"]}


def every_group():
    """All groups of the list, for a look at the list itself."""
    whole = yaml.safe_load(EXPECTED.read_text())
    return [group for side in whole.values() for suite in side.values() for group in suite]
