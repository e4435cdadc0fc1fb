"""One gate: whoever asks about a call, and whenever, is given the same verdict for the same reason.

The loop, another agent, a dry run, the judgement of past calls and a project's own linters.
"""

import pytest

from bridle import HookEvent
from bridle.agents.base import AgentResponse
from bridle.engine.redaction import MARK
from bridle.events import ApprovalAsked, CallIntended, ToolResultEvent
from bridle.messages import ToolCall
from bridle.policy import MODES, parse_rule
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.runtime.assembly import local_folder
from bridle.runtime.diagnostics import Diagnostics, as_checks
from bridle.runtime.dry_run import DryRun, ReEvaluation
from bridle.stores.memory_store import MemoryStore
from bridle.workspace.workspace import Workspace
from rig import calls, run

RULES = {
    "no rules": (),
    "some rules": (
        "deny: read(private/**)",
        "ask: write(*.sql)",
        "allow: shell(touch *)",
        "allow: shell(git -C open grep *)",
    ),
}
CALLS = (
    ("read", {"path": "a.txt"}),
    ("read", {"path": ".env"}),
    ("read", {"path": "private/key.txt"}),
    ("read", {"path": "../elsewhere"}),
    ("read", {"path": f"{MARK}.txt"}),
    ("glob", {"pattern": "*.txt"}),
    ("grep", {"pattern": "quokka"}),
    ("grep", {"pattern": "quokka", "path": "private"}),
    ("grep", {"pattern": "quokka", "path": "open", "glob": "*.txt"}),
    ("write", {"path": "new.txt", "content": "x"}),
    ("write", {"path": "new.sql", "content": "x"}),
    ("write", {"path": ".git/hooks/pre-commit", "content": "x"}),
    ("shell", {"command": "ls"}),
    ("shell", {"command": "ls", "sandbox": False}),
    ("shell", {"command": "cat private/key.txt"}),
    ("shell", {"command": "grep -r quokka ."}),
    ("shell", {"command": "rg quokka open"}),
    ("shell", {"command": "git -C open grep quokka"}),
    ("shell", {"command": "touch made"}),
    ("shell", {"command": "touch made && cat .env"}),
    ("shell", {"command": "python3 missing.py"}),
    ("shell", {"command": "echo $(cat a.txt)"}),
    ("shell", {"command": "rm -rf /"}),
)
AGENTS_OWN = (*CALLS, ("Frobnicate", {"what": "a.txt"}))
CHECKS = tuple(
    arguments["command"]
    for name, arguments in CALLS
    if name == "shell" and "sandbox" not in arguments and not set("&$") & {*arguments["command"]}
)


class Agent:
    """Makes every call of the table, by its own means or by ours."""

    name = "table"

    def __init__(self, *, foreign):
        self.foreign = foreign

    async def execute(
        self, prompt, session, *, can_use_tool=None, on_text_chunk=None, on_tool_activity=None
    ):
        for number, (name, arguments) in enumerate(AGENTS_OWN if self.foreign else CALLS):
            if self.foreign:
                permission = await can_use_tool(name, arguments, f"call_{number + 1}")
                if permission.allowed:
                    await session.finish(f"call_{number + 1}", "done")
            else:
                await session.call(name, arguments, f"call_{number + 1}")
        return AgentResponse("ok")

    async def cancel(self, session_id):
        pass

    async def shutdown(self):
        pass


@pytest.fixture
def folder(tmp_path):
    for name in (".env", "a.txt", "private/key.txt", "open/a.txt", ".git/HEAD"):
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("quokka\n")
    return tmp_path / "work"


async def recorded(folder, model, *, rules, mode, agent=None):
    """The log of a turn in which nobody answers, and its session's id."""
    async with build_engine(
        model,
        agent=agent,
        workspace=folder,
        store=MemoryStore(),
        sandbox="none",
        rules=[*rules],
        mode=mode,
        on_ask="deny",
        undo=False,
    ) as engine:
        done = await engine.run("go")
        assert done.reason == "done", done
        return list(engine.store.read(done.session_id)), done.session_id


def verdicts(records):
    """What the log says was decided about each call, in order."""
    asked, begun, decided = {}, set(), []
    for event in (record.event for record in records):
        if isinstance(event, ApprovalAsked):
            asked[event.call.id] = ("ask", event.reason, event.rule)
        elif isinstance(event, CallIntended):
            begun.add(event.call_id)
        elif isinstance(event, ToolResultEvent):
            output = event.output
            if output.call_id in asked:
                decided.append(asked[output.call_id])
            elif output.call_id in begun:
                decided.append(("allow", "", ""))
            else:
                said = output.text.removeprefix("not run: ")
                decided.append(("deny", said, output.data["rule"]))
    return decided


def foreseen(folder, table, *, rules, mode, foreign=False):
    dry_run = DryRun(folder, map(parse_rule, rules), sandbox="none")
    decided = []
    for name, arguments in table:
        call = ToolCall("", name, arguments)
        decision = dry_run.judge(call, mode, foreign=foreign).decision
        said = (decision.reason, decision.rule) if decision.verdict != "allow" else ("", "")
        decided.append((decision.verdict, *said))
    return decided


def judged_again(folder, records, session_id, *, rules, mode):
    dry_run = DryRun(folder, map(parse_rule, rules), sandbox="none")
    return list(ReEvaluation(session_id, dry_run, mode).decisions(records))


def side_by_side(table, ours, theirs):
    return list(zip(table, ours, strict=True)), list(zip(table, theirs, strict=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_the_loop_a_dry_run_and_the_judgement_of_past_calls_agree(folder, rules, mode):
    wanted = foreseen(folder, CALLS, rules=rules, mode=mode)
    model = Scripted([calls(*CALLS), "ok"])
    records, session_id = run(recorded(folder, model, rules=rules, mode=mode))
    ours, theirs = side_by_side(CALLS, verdicts(records), wanted)
    assert ours == theirs
    again = judged_again(folder, records, session_id, rules=rules, mode=mode)
    assert [(one.then, one.now) for one in again] == [(one[0], one[0]) for one in wanted]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_what_another_agent_has_our_tools_do_is_judged_like_our_own(folder, rules, mode):
    wanted = foreseen(folder, CALLS, rules=rules, mode=mode)
    work = recorded(folder, None, rules=rules, mode=mode, agent=Agent(foreign=False))
    records, session_id = run(work)
    ours, theirs = side_by_side(CALLS, verdicts(records), wanted)
    assert ours == theirs
    again = judged_again(folder, records, session_id, rules=rules, mode=mode)
    assert [one for one in again if not one.is_same] == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_what_another_agent_does_itself_is_judged_alike_now_beforehand_and_afterwards(
    folder, rules, mode
):
    """Its own search reads what ours leaves out, so the two need not be judged alike."""
    wanted = foreseen(folder, AGENTS_OWN, rules=rules, mode=mode, foreign=True)
    work = recorded(folder, None, rules=rules, mode=mode, agent=Agent(foreign=True))
    records, session_id = run(work)
    ours, theirs = side_by_side(AGENTS_OWN, verdicts(records), wanted)
    assert ours == theirs
    again = judged_again(folder, records, session_id, rules=rules, mode=mode)
    assert [(one.then, one.now) for one in again] == [(one[0], one[0]) for one in wanted]


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("command", CHECKS)
def test_a_linter_is_judged_like_the_shell(folder, rules, command):
    """Without a sandbox it runs what the mode `edits` would run unasked, and asks nobody."""
    workspace = Workspace(folder)
    local = local_folder(workspace, sandbox="none")
    rules_read = [parse_rule(rule) for rule in rules]
    linter = Diagnostics(
        as_checks([f"*.txt: {command}"]),
        workspace,
        rules=rules_read,
        machine=local.machine,
        sandbox=local.sandbox,
    )
    edit = HookEvent("after_tool", tool="write", arguments={"path": "a.txt"})
    said = run(linter.run(edit)).word
    table = [("shell", {"command": command})]
    ((verdict, reason, _),) = foreseen(folder, table, rules=rules, mode="edits")
    if verdict == "allow":
        assert "was not run" not in said
    else:
        assert f"was not run: {reason}" in said
