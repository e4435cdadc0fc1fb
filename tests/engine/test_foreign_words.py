"""Whatever an agent calls its tools: what is known is judged as ours, and the rest is nobody's."""

import pytest
from acting import Acting

from bridle import HookEvent, HookResult, hook
from bridle.agents.base import AgentResponse
from bridle.errors import ConfigError
from bridle.events import ApprovalAsked, CallIntended, ResponseCompleted, TraceEvent
from bridle.messages import Message, ToolCall
from bridle.runtime.assembly import build_engine
from rig import events, run


async def judged(calls, folder, *, announced=False, **options):
    """What the gate says of these calls, and the log of the turn."""
    found = []

    async def act(prompt, session, can_use_tool):
        if announced:
            made = [ToolCall(f"c{at}", *call) for at, call in enumerate(calls)]
            session.emit(ResponseCompleted("tool_use", Message("assistant", tuple(made))))
        for at, (name, arguments) in enumerate(calls):
            permission = await can_use_tool(name, arguments, f"c{at}")
            found.append(permission)
            if permission:
                await session.finish(f"c{at}", "made")
        return AgentResponse("ok")

    state = folder.parent / "state"
    async with build_engine(
        agent=Acting(act), workspace=folder, state=state, sandbox="none", **options
    ) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
        return found, lambda kind: events(engine, session.id, kind)


def verdicts(calls, folder, **options):
    found, _ = run(judged(calls, folder, **options))
    return [one.behavior for one in found]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


CLAUDES = [
    ("Bash", {"command": "curl http://x.example"}),
    ("Bash", {"command": "rm -rf /"}),
    ("Write", {"file_path": "/etc/passwd", "content": ""}),
    ("Read", {"file_path": "/root/.ssh/id_rsa"}),
    ("Bash", {"command": "ls", "cwd": "/"}),
    ("MultiEdit", {"file_path": ".git/config", "edits": []}),
]


def test_the_floor_and_deny_rules_hold_for_claudes_names_whoever_uses_them(folder):
    rules = ["deny: shell(curl *)"]
    assert verdicts(CLAUDES, folder, mode="auto", rules=rules) == ["deny"] * 6


def test_a_call_in_claudes_words_is_recorded_and_run_as_ours(folder):
    calls = [
        ("Read", {"file_path": f"{folder}/a.txt"}),
        ("Write", {"file_path": "b", "content": ""}),
    ]
    found, said = run(judged(calls, folder, mode="edits"))
    assert [one.behavior for one in found] == ["allow", "allow"]
    assert [one.updated_input for one in found] == [None, None]
    assert [one.name for one in said(CallIntended)] == ["read", "write"]


@pytest.mark.parametrize("name", ["Read", "Own"])
def test_a_reply_in_claudes_words_is_asked_about_once(folder, name):
    calls = [(name, {"file_path": "a.txt"})]
    found, said = run(judged(calls, folder, announced=True, rules=["allow: Own"]))
    assert [one.behavior for one in found] == ["allow"]
    assert [one.call_id for one in said(CallIntended)] == ["c0"]
    assert [one.kind for one in said(TraceEvent)] == []


def test_what_a_hook_changes_comes_back_in_the_agents_own_words(folder):
    @hook("before_tool")
    def elsewhere(event: HookEvent) -> HookResult:
        return HookResult(arguments={**event.arguments, "path": "other.txt"})

    call = ("Write", {"file_path": f"{folder}/a.txt", "content": "x"})
    found, _ = run(judged([call], folder, mode="edits", hooks=[elsewhere]))
    assert [one.updated_input for one in found] == [
        {"file_path": f"{folder}/other.txt", "content": "x"}
    ]


@pytest.mark.parametrize(
    ("mode", "rules", "verdict", "asked"),
    [
        ("ask", [], "deny", 1),  # nobody is there to say yes
        ("edits", [], "deny", 1),
        ("auto", [], "deny", 0),
        ("plan", ["allow: deploy"], "deny", 0),
        ("ask", ["allow: deploy"], "allow", 0),
        ("auto", ["allow: deploy"], "allow", 0),
        ("auto", ["allow: dep*"], "allow", 0),
        ("auto", ["allow: *"], "deny", 0),  # that names nothing
        ("auto", ["allow: deploy(now)"], "deny", 0),
        ("auto", ["allow: deploy", "deny: deploy"], "deny", 0),
    ],
)
def test_a_tool_that_is_nobodys_is_asked_about_and_never_runs_unasked(
    folder, mode, rules, verdict, asked
):
    options = {"mode": mode, "rules": rules}
    found, said = run(judged([("deploy", {"command": "all"})], folder, **options))
    assert [one.behavior for one in found] == [verdict]
    assert len(said(ApprovalAsked)) == asked


def test_arguments_that_are_none_are_refused_in_words(folder):
    calls = [("Bash", None), ("Read", {"file_path": 7}), ("AskUserQuestion", {"questions": 3})]
    assert verdicts(calls, folder, mode="auto") == ["deny"] * 3


def test_the_class_of_an_agent_is_no_agent(folder):
    with pytest.raises(ConfigError, match="Acting is the class of an agent") as caught:
        build_engine(agent=Acting, workspace=folder)
    assert caught.value.hint == "Hand in one of it: agent=Acting(…)."
