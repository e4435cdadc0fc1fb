"""A search by the agent's own means reads what ours would leave out: it is asked about."""

import pytest
from acting import Acting

from bridle.agents.base import AgentResponse
from bridle.events import ApprovalAsked
from bridle.runtime.assembly import build_engine
from bridle.workspace import machine
from rig import events, run


async def searched(call, folder, *, ours=False, **options):
    """What came of a search, and why a person was asked about it."""
    found = []

    async def act(prompt, session, can_use_tool):
        if ours:
            found.append((await session.call(*call)).text)
        else:
            found.append((await can_use_tool(*call)).behavior)
        return AgentResponse("ok")

    state = folder.parent / "state"
    async with build_engine(
        agent=Acting(act), workspace=folder, state=state, sandbox="none", **options
    ) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
        return found, [one.reason for one in events(engine, session.id, ApprovalAsked)]


@pytest.fixture
def folder(tmp_path):
    for name in (".env", "src/a.py", "notes/b.txt"):
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("PASSWORD=hunter2\n")
    return tmp_path / "work"


REASON = "reads .env: it holds credentials"


def grep(**given):
    return "grep", {"pattern": "PASS", **given}


@pytest.mark.parametrize(
    ("call", "verdict"),
    [
        (grep(), "deny"),  # nobody is there to be asked
        (grep(path="."), "deny"),
        (grep(glob="*"), "deny"),
        (grep(glob="**/.e*"), "deny"),
        (grep(glob="!*.py"), "deny"),
        (grep(glob="*.{py,env}"), "deny"),
        (("Grep", {"pattern": "PASS", "path": "WORK"}), "deny"),
        (grep(glob="*.py"), "allow"),
        (grep(path="src"), "allow"),
        (grep(path="src/a.py"), "allow"),
        (("list", {}), "allow"),
        (("glob", {"pattern": "**"}), "allow"),
    ],
)
def test_a_search_that_would_come_by_credentials_is_asked_about(folder, call, verdict):
    name, given = call
    given = {key: str(folder) if value == "WORK" else value for key, value in given.items()}
    found, asked = run(searched((name, given), folder))
    assert found == [verdict]
    assert asked == [REASON] * (verdict == "deny")


@pytest.mark.parametrize("mode", ["ask", "edits", "auto", "plan"])
@pytest.mark.parametrize("rule", ["deny: read(.env)", "deny: read(notes/**)", "ask: grep(b.txt)"])
def test_a_rule_about_files_is_never_passed_by_with_a_search(folder, mode, rule):
    found, _ = run(searched(grep(), folder, mode=mode, rules=[rule, "allow: grep"]))
    assert found == ["deny"]
    found, _ = run(searched(grep(path="src/a.py"), folder, mode=mode, rules=[rule]))
    assert found == ["allow"]


def test_a_rule_that_forbids_a_credential_forbids_the_search_that_reads_it_without_a_question(
    folder,
):
    found, asked = run(searched(grep(), folder, rules=["deny: read(.env)"]))
    assert (found, asked) == (["deny"], [])


def test_in_a_folder_that_cannot_be_looked_through_a_search_asks(folder, monkeypatch):
    monkeypatch.setattr(machine.sensitive_files, "__defaults__", (1,))
    _, asked = run(searched(grep(path="."), folder))
    assert asked == [". has too many files to look for credentials in them"]


def test_our_own_search_leaves_credentials_out_and_asks_nobody(folder):
    (found,), asked = run(searched(grep(), folder, ours=True))
    assert asked == []
    assert "a.py" in found and ".env" not in found
