"""Hooks that are Python: functions, objects, somebody's own, in their order, in an engine."""

import asyncio
import re
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle import HookEvent, HookResult, hook
from bridle.config.hooks import parse_hooks
from bridle.errors import ConfigError, HookDenied
from bridle.events import ToolResultEvent, TraceEvent
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.runtime.hooks import MOMENTS, Hook, HookChain, as_hooks
from bridle.stores.memory_store import MemoryStore
from rig import call, run

WRITE = HookEvent("before_tool", tool="write", arguments={"path": "a"})


def heard(given, event=WRITE):
    return run(as_hooks(given, "/").run(event))


def say(remark):
    return lambda event: remark


async def written(root, hooks, **options):
    """A turn that writes a file and then says ok, under these hooks: its result, and the traces."""
    script = [call("write", path="a.txt", content="x"), "ok"]
    given = {"store": MemoryStore(), "mode": "auto", "sandbox": "none", **options}
    async with build_engine(Scripted(script), workspace=root, hooks=hooks, **given) as engine:
        done = await engine.run("go")
        events = [record.event for record in engine.store.read(done.session_id)]
    outputs = [one.output for one in events if isinstance(one, ToolResultEvent)]
    traces = [one.detail for one in events if isinstance(one, TraceEvent) and one.kind == "hook"]
    return outputs, traces


def test_a_function_hears_every_moment_unless_it_names_some():
    assert [as_hooks([say(None)], "/").handles(one) for one in MOMENTS] == [True] * 5
    one = hook("before_tool", "after_turn")(say(None))
    found = [moment for moment in MOMENTS if as_hooks([one], "/").handles(moment)]
    assert found == ["before_tool", "after_turn"]


def test_an_object_hears_the_moments_that_it_has_methods_for():
    class Careful:
        tool = ["write", "ed*"]

        def before_tool(self, event):
            return HookResult(deny=f"no {event.tool}")

        async def after_turn(self, event):
            return HookResult(word="bye")

    hooks = as_hooks([Careful()], "/")
    found = [moment for moment in MOMENTS if hooks.handles(moment)]
    assert found == ["before_tool", "after_turn"]
    assert heard([Careful()]) == HookResult(deny="no write")
    assert heard([Careful()], HookEvent("before_tool", tool="edit")) == HookResult(deny="no edit")
    assert heard([Careful()], HookEvent("before_tool", tool="read")) == HookResult()
    assert heard([Careful()], HookEvent("after_turn")) == HookResult(word="bye")


def test_somebody_s_own_hooks_are_used_as_they_are_and_can_stand_among_others():
    class Own:
        def handles(self, moment):
            return moment == "before_tool"

        async def run(self, event):
            return HookResult(word=f"own saw {event.arguments}")

    own = Own()
    assert as_hooks(own, "/") is own
    assert as_hooks([own], "/") is own
    changes = hook("before_tool")(say(HookResult(arguments={"path": "b"})))
    assert heard([changes, own]) == HookResult(
        word="own saw {'path': 'b'}", arguments={"path": "b"}
    )


def test_without_hooks_nobody_is_asked():
    assert (as_hooks(None, "/"), as_hooks([], "/")) == (None, None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([7], "7 is no hook"),
        (["x"], "'x' is no hook"),
        ([Hook], "Hook is a class, not a hook"),
    ],
)
def test_what_is_no_hook_is_refused_when_the_engine_is_built(given, said):
    with pytest.raises(ConfigError, match=said):
        build_engine(Scripted([]), hooks=given)


def test_a_moment_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match="'before_lunch' is no moment"):
        hook("before_lunch")


def test_each_sees_what_those_before_it_changed_and_words_add_up():
    seen = []

    async def first(event):
        seen.append(event.arguments)
        return HookResult(word="one", arguments={"path": "b"})

    def second(event):
        seen.append(event.arguments)
        return HookResult(word="two")

    found = heard([first, second])
    assert found == HookResult(word="one\ntwo", arguments={"path": "b"})
    assert seen == [{"path": "a"}, {"path": "b"}]


def test_a_prompt_can_be_changed_before_it_is_sent_and_nothing_else_at_that_moment():
    found = heard(
        [say(HookResult(prompt="b", arguments={"x": 1})), lambda it: HookResult(word=it.prompt)],
        HookEvent("before_prompt", prompt="a"),
    )
    assert found == HookResult(word="b", prompt="b")
    assert heard([say(HookResult(prompt="b"))]) == HookResult()


def test_the_first_deny_beforehand_ends_it_and_afterwards_all_are_heard():
    asked = []

    def later(event):
        asked.append(event.moment)
        return HookResult(deny="second")

    no = say(HookResult(deny="first"))
    assert heard([no, later]) == HookResult(deny="first")
    assert heard([no, later], HookEvent("after_tool", tool="write")) == HookResult(
        deny="first; second"
    )
    assert asked == ["after_tool"]


def test_what_a_hook_alters_in_place_is_nobody_else_s():
    kept = []

    def keeps(event):
        event.arguments["path"] = "evil"
        kept.append({"path": "b"})
        return HookResult(arguments=kept[0])

    def alters(event):
        kept[0]["path"] = "evil"
        return HookResult(word=event.arguments["path"])

    plain = hook("before_tool")(lambda event: event.arguments.clear())
    assert heard([plain, lambda it: HookResult(word=it.arguments["path"])]) == HookResult(word="a")
    assert heard([keeps, alters]) == HookResult(word="b", arguments={"path": "b"})


def breaks(event):
    raise RuntimeError("oops")


async def leaves(event):
    raise SystemExit(3)


async def never(event):
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (breaks, "the hook breaks broke: RuntimeError('oops')"),
        (leaves, "the hook leaves broke: it raised SystemExit"),
        (Hook(never, seconds=0.01), "the hook never broke: it did not end within 0.01 seconds"),
        (say("no"), "broke: it said what nobody understands: str"),
        (say(HookResult(deny=7)), "broke: it said what nobody understands: HookResult"),
        (say(HookResult(arguments=[])), "broke: it said what nobody understands: HookResult"),
        (say(HookResult(arguments={"x": threading.Lock()})), "cannot pickle"),
    ],
)
def test_one_that_breaks_has_denied_beforehand_and_afterwards_it_is_said(broken, why):
    before = heard([broken])
    assert why in before.deny
    assert before == HookResult(deny=before.deny)
    after = heard([broken], HookEvent("after_tool", tool="write"))
    assert after == HookResult(word=before.deny)


def test_one_that_hangs_in_a_thread_or_does_not_let_go_has_denied():
    over = threading.Event()

    async def stubborn(event):
        while not over.is_set():
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                continue

    async def story():
        hangs = Hook(lambda event: over.wait(30), seconds=0.01)
        said = [
            await as_hooks([one], "/").run(WRITE) for one in (hangs, Hook(stubborn, seconds=0.01))
        ]
        over.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(others)
        return [one.deny.endswith("broke: it did not end within 0.01 seconds") for one in said]

    assert asyncio.run(story()) == [True, True]


def test_a_turn_that_is_interrupted_while_a_hook_thinks_ends_at_once(tmp_path):
    begun = asyncio.Event()

    async def thinks(event):
        begun.set()
        await asyncio.Event().wait()

    async def story():
        script = [call("write", path="a.txt", content="x"), "ok"]
        hooks = [hook("before_tool")(thinks)]
        given = {"store": MemoryStore(), "mode": "auto", "workspace": tmp_path}
        async with build_engine(Scripted(script), hooks=hooks, **given) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await begun.wait()
            await session.interrupt()
            return (await session.wait(turn)).reason

    assert run(story()) == "interrupted"
    assert not (tmp_path / "a.txt").exists()


def test_in_an_engine_a_hook_denies_changes_and_adds_a_word(tmp_path):
    no = hook("before_tool", tool="write")(say(HookResult(deny="not today")))
    ((output,), traces) = run(written(tmp_path, [no]))
    assert (output.text, output.is_error) == ("not run: a hook denied it: not today", True)
    assert not (tmp_path / "a.txt").exists()
    assert traces[0]["deny"] == "not today"

    class Signs:
        def before_tool(self, event):
            return HookResult(arguments={**event.arguments, "content": "signed"})

        def after_tool(self, event):
            return HookResult(word=f"{event.tool} went {'well' if event.ok else 'wrong'}")

    ((output,), _) = run(written(tmp_path, Signs()))
    assert (tmp_path / "a.txt").read_text() == "signed"
    assert output.text.endswith("[a hook says: write went well]")


def test_a_prompt_is_refused_before_it_is_recorded(tmp_path):
    no = hook("before_prompt")(say(HookResult(deny="not now")))
    with pytest.raises(HookDenied, match="not now"):
        run(written(tmp_path, [no]))


REMARKS = st.builds(
    HookResult,
    word=st.sampled_from(["", "allowed", "the gate says yes"]),
    arguments=st.sampled_from([None, {}, {"path": "a.txt", "content": "y"}, {"path": "b.txt"}]),
)


@settings(max_examples=25, deadline=None)
@given(before=st.lists(REMARKS, max_size=3), after=REMARKS)
def test_whatever_hooks_say_a_deny_stays_a_deny(tmp_path_factory, before, after):
    root = tmp_path_factory.mktemp("w")
    hooks = [hook("before_tool")(say(one)) for one in before] + [hook("after_tool")(say(after))]
    ((output,), _) = run(written(root, hooks, rules=["deny: write"]))
    assert output.is_error
    assert list(root.iterdir()) == []


def test_hooks_in_order_say_what_they_are():
    assert [one.name for one in HookChain([Hook(breaks), Hook(never)]).runners] == [
        "breaks",
        "never",
    ]


def guide(kind):
    page = Path(__file__).parents[2] / "docs" / "guides" / "hooks.md"
    [block] = re.findall(rf"^```{kind}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    return block


def test_the_guide_s_file_is_understood():
    lines = parse_hooks(guide("yaml"), Path("hooks.yaml"))
    assert [one.moments[0] for one in lines] == ["before_tool", "after_tool", "before_prompt"]


def test_the_guide_s_functions_do_what_it_says(tmp_path, monkeypatch):
    monkeypatch.setenv("BRIDLE_MODEL", "offline")
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path))
    names = {}
    exec(guide("python"), names)  # the page's own code, word for word
    shell = HookEvent("before_tool", tool="shell", arguments={"command": "make deploy"})
    hooks = [names["office_hours"], names["Audit"]()]
    assert heard(hooks, shell) == HookResult(deny="deployments go through the pipeline")
    assert heard(hooks, HookEvent("after_tool", tool="write")).word.endswith("by Ann")
