"""What else can be done to a session over the server: forked, rewound, undone, bounded, deleted."""

import pytest
from sessions_rig import (
    ASKS,
    HOLDS,
    Held,
    asked,
    ended,
    made,
    opening,
    refused,
    serving,
    spoken,
    yes,
)

from bridle.errors import ConfigError, SessionBusy, SessionError, UnknownSession
from bridle.events import ModeChanged, TraceEvent, Undone
from bridle.protocols.session_errors import (
    ApprovalChanged,
    BadRequest,
    NotFound,
    OtherWorkspace,
    UndoClash,
    UnknownWorkspace,
)
from bridle.protocols.session_values import (
    ForkRequest,
    NewSession,
    PromptRequest,
    ResumeOptions,
    RewindRequest,
    SessionLimits,
    SessionUpdate,
    UndoRequest,
)
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.service.engine_pool import EnginePool
from bridle.service.local_service import LocalService
from bridle.service.search import fuzzy
from rig import run


def told(sessions, name, kind):
    return [one.event for one in sessions.catalog.read(name) if isinstance(one.event, kind)]


async def said(sessions, name):
    return [one.content for one in (await sessions.history(name)).messages]


def test_a_fork_begins_as_the_other_and_goes_its_own_way(tmp_path):
    async def story():
        async with serving(tmp_path, ["one", "two", "three"]) as sessions:
            name = await made(sessions)
            await spoken(sessions, name, "first")
            at = sessions.get_open(name).seq
            await spoken(sessions, name, "second")
            copy = await sessions.fork(name, ForkRequest(at), "ann")
            assert await said(sessions, copy.id) == ["first", "one"]
            assert copy.title == "first (fork)"
            again = await sessions.fork(copy.id, ForkRequest(), "ann")
            assert again.title == "first (fork 2)"
            whole = await sessions.fork(name, ForkRequest(), "ann")
            assert await said(sessions, whole.id) == ["first", "one", "second", "two"]
            await spoken(sessions, copy.id, "other")
            assert await said(sessions, copy.id) == ["first", "one", "other", "three"]
            assert await said(sessions, name) == ["first", "one", "second", "two"]
            await refused(sessions.fork(name, ForkRequest(0), "ann"), BadRequest)
            await refused(sessions.fork(name, ForkRequest(10_000), "ann"), SessionError)

    run(story())


def test_a_rewind_takes_the_conversation_back(tmp_path):
    async def story():
        async with serving(tmp_path, ["one", "two"]) as sessions:
            name = await made(sessions)
            await spoken(sessions, name, "first")
            at = sessions.get_open(name).seq
            await spoken(sessions, name, "second")
            detail = await sessions.rewind(name, RewindRequest(at), "ann")
            assert (detail.id, await said(sessions, name)) == (name, ["first", "one"])
            await refused(sessions.rewind(name, RewindRequest(10_000), "ann"), SessionError)
            assert (await sessions.compact(name, "bob")).id == name
            assert [one.detail for one in told(sessions, name, TraceEvent)][-1] == {"by": "bob"}

    run(story())


def test_nothing_is_changed_under_a_turn_that_runs(tmp_path):
    async def story():
        held = Held()
        async with serving(tmp_path, [HOLDS, "done"], held) as sessions:
            name = await made(sessions)
            await sessions.send(name, PromptRequest("go"), "ann")
            await held.begun.wait()
            for work in (
                sessions.rewind(name, RewindRequest(0), "ann"),
                sessions.compact(name, "ann"),
                sessions.delete(name, "ann"),
                sessions.change(name, SessionUpdate(model="other"), "ann"),
                sessions.undo(name, UndoRequest(), "ann"),
            ):
                await refused(work, SessionBusy)
            await sessions.change(name, SessionUpdate(title="meanwhile", mode="plan"), "ann")
            assert (await sessions.info(name)).mode == "plan"
            await sessions.interrupt(name, "ann")
            assert await ended(sessions, name) == "interrupted"
            await sessions.interrupt(name, "ann")  # nothing to end is no error
            changed = told(sessions, name, ModeChanged)
            assert [(one.mode, one.by) for one in changed] == [("plan", "ann")]

    run(story())


def test_a_deleted_session_is_gone_for_everybody(tmp_path):
    async def story():
        async with serving(tmp_path, ["one"]) as sessions:
            told_of = []
            sessions.on_changed(lambda *what: told_of.append(what))
            name = await made(sessions)
            await spoken(sessions, name)
            await sessions.delete(name, "ann")
            await refused(sessions.info(name), UnknownSession)
            assert (await sessions.list()).sessions == ()
            assert (name, "deleted") in told_of
            assert not (tmp_path / "state" / "sessions" / name).exists()

    run(story())


def test_limits_can_become_narrower_and_stay_so_after_a_restart(tmp_path):
    async def story():
        async with serving(tmp_path, ["one"]) as sessions:
            name = await made(sessions)
            budget = await sessions.set_budget(
                name, SessionLimits(max_steps=5, max_turn_tokens=1000), "ann"
            )
            assert (
                budget.limits.max_steps,
                budget.limits.max_turn_tokens,
                budget.limits.max_cost,
            ) == (
                5,
                1000,
                None,
            )
            await refused(
                sessions.set_budget(name, SessionLimits(max_steps=6), "ann"), SessionError
            )
            await refused(
                sessions.set_budget(name, SessionLimits(max_steps=0), "ann"), SessionError
            )
            await refused(
                sessions.set_budget(name, SessionLimits(max_turn_tokens=-1), "ann"), SessionError
            )
            assert (await sessions.budget(name)).limits.max_steps == 5
        async with serving(tmp_path, [ASKS] * 9) as sessions:
            shut = await sessions.detail(name)
            assert (shut.holder, shut.limits.max_steps, shut.limits.max_turn_tokens) == (
                "",
                5,
                1000,
            )
            assert (shut.mode, (await sessions.list()).sessions[0].mode) == ("ask", "ask")
            await sessions.resume(name, ResumeOptions(), "ann")
            assert (await sessions.budget(name)).limits.max_steps == 5

    run(story())


def built(place, models):
    """EnginePool with the real built-in tools, one for each model that is wanted."""

    def opening(wanted, session_id):
        name = wanted.model or "usual"
        if name not in models:
            raise ConfigError(f"there is no model {name}")
        from bridle.protocols.provider import ProviderInfo

        model = Scripted(models[name], info=ProviderInfo("scripted", name))
        return build_engine(
            model, workspace=wanted.workspace, state=place / "state", on_ask="wait", face="server"
        )

    (place / "work").mkdir(exist_ok=True)
    return LocalService(place / "state", EnginePool(opening), (str(place / "work"),))


def wrote(path, content):
    return {"calls": [{"name": "write", "arguments": {"path": path, "content": content}}]}


def test_an_undo_does_what_was_shown_or_nothing(tmp_path):
    async def story():
        file = tmp_path / "work" / "a.txt"
        read = {"calls": [{"name": "read", "arguments": {"path": "a.txt"}}]}
        sessions = built(tmp_path, {"usual": [read, wrote("a.txt", "new\n"), "done"]})
        file.write_text("old\n")
        await sessions.start()
        name = await made(sessions)
        await refused(sessions.undo_preview(name), NotFound)
        await sessions.send(name, PromptRequest("go"), "ann")
        question, _ = await asked(sessions, name)
        (shown,) = (await sessions.pending()).approvals
        assert shown.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new"
        await sessions.answer(name, question.call.id, yes(question), "ann")
        assert await ended(sessions, name) == "done"
        preview = await sessions.undo_preview(name)
        assert [(one.path, one.how) for one in preview.files] == [("a.txt", "changed")]
        assert preview.files[0].diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-new\n+old"
        await refused(sessions.undo(name, UndoRequest(token="0" * 24), "ann"), ApprovalChanged)
        assert file.read_text() == "new\n"
        file.write_text("somebody else's\n")
        clash = await sessions.undo_preview(name)
        assert ([one.path for one in clash.clashes], clash.files) == (["a.txt"], ())
        assert "+somebody else's" in clash.clashes[0].diff
        await refused(sessions.undo(name, UndoRequest(token=clash.token), "ann"), UndoClash)
        skipped = await sessions.undo(name, UndoRequest(token=clash.token, clashes="skip"), "ann")
        assert (skipped.files, skipped.skipped) == ((), ("a.txt",))
        assert file.read_text() == "somebody else's\n"
        file.write_text("new\n")
        done = await sessions.undo(name, UndoRequest(preview.turn, preview.token), "bob")
        assert (file.read_text(), done.files) == ("old\n", ("a.txt",))
        assert [(one.turn, one.by) for one in told(sessions, name, Undone)] == [(1, "bob")]
        await sessions.stop(5)

    run(story())


def test_another_model_carries_the_session_from_then_on(tmp_path):
    async def story():
        models = {"usual": ["one", "back"], "other": ["two", "three"]}
        sessions = built(tmp_path, models)
        await sessions.start()
        name = await made(sessions)
        await spoken(sessions, name)
        changed = await sessions.change(name, SessionUpdate(model="other"), "ann")
        assert changed.model == "scripted/other"
        await spoken(sessions, name)
        await refused(sessions.change(name, SessionUpdate(model="none"), "ann"), ConfigError)
        assert (await sessions.info(name)).model == "scripted/other"
        await sessions.stop(5)
        sessions = built(tmp_path, models | {"other": ["three"]})  # it is the same after a restart
        await sessions.start()
        await spoken(sessions, name)
        assert await said(sessions, name) == ["go", "one", "go", "two", "go", "three"]
        assert (await sessions.info(name)).model == "scripted/other"
        await sessions.stop(5)
        sessions = built(tmp_path, {"usual": ["back"]})  # ... and where it cannot be, as usual
        await sessions.start()
        await spoken(sessions, name)
        assert (await sessions.info(name)).model == "scripted/usual"
        warned = [one for one in told(sessions, name, TraceEvent) if one.kind == "model_replaced"]
        words = (
            "scripted/other, which ran this session before, is not available: "
            "there is no model other"
        )
        assert [one.detail for one in warned] == [{"model": "scripted/usual", "message": words}]
        await sessions.stop(5)

    run(story())


def test_a_session_stays_in_its_folder_while_that_is_there(tmp_path):
    """(A10) Another one is refused in words, and taken where its own is gone."""

    async def story():
        other = tmp_path / "other"
        other.mkdir()
        folders = (str(tmp_path / "work"), str(other))
        async with serving(tmp_path, ["one", "two"], workspaces=folders) as sessions:
            name = await made(sessions)
            await spoken(sessions, name)
            no = await refused(
                sessions.resume(name, ResumeOptions(str(other)), "ann"), OtherWorkspace
            )
            assert (no.status_code, no.code) == (409, "other_workspace")
            assert no.message == f"session {name} works in {folders[0]!r}, and stays there"
            await refused(
                sessions.resume(name, ResumeOptions(str(tmp_path)), "ann"), UnknownWorkspace
            )
            second = await sessions.create(NewSession(str(other)), "ann")
            listed = await sessions.list(workspace=str(other))
            assert [one.id for one in listed.sessions] == [second.id]
        (tmp_path / "work").rename(tmp_path / "elsewhere")
        sessions = LocalService(
            tmp_path / "state",
            EnginePool(opening(str(tmp_path / "state"), ["two"])),
            folders,
        )
        await sessions.start()
        await refused(sessions.resume(name, ResumeOptions(), "ann"), UnknownWorkspace)
        moved = await sessions.resume(name, ResumeOptions(str(other)), "ann")
        assert moved.workspace == str(other)
        assert sessions.get_open(name).workspace == str(other)
        await sessions.stop(5)

    run(story())


def test_resuming_a_session_in_its_own_folder_keeps_its_model(tmp_path):
    """(A10) What is left out is as it was, in the process that had it and in the next."""

    async def story():
        models = {"usual": ["never"], "other": ["one", "two", "three"]}
        sessions = built(tmp_path, models)
        await sessions.start()
        name = (await sessions.create(NewSession(model="other"), "ann")).id
        own = ResumeOptions((await sessions.info(name)).workspace)
        assert (await sessions.resume(name, own, "ann")).model == "scripted/other"
        await spoken(sessions, name)
        await sessions.stop(5)
        sessions = built(tmp_path, models)
        await sessions.start()
        assert (await sessions.resume(name, own, "ann")).model == "scripted/other"
        await sessions.stop(5)

    run(story())


def test_files_are_found_by_a_few_letters_and_ignored_ones_are_not(tmp_path):
    async def story():
        work = tmp_path / "work"
        (work / "src").mkdir(parents=True)
        for path in ("src/session.py", "src/engine.py", "sessions.md", "build.log", ".gitignore"):
            (work / path).write_text("*.log\n")
        async with serving(tmp_path, []) as sessions:
            name = await made(sessions)
            assert (await sessions.files(name, "sess")).paths == ("sessions.md", "src/session.py")
            assert (await sessions.files(name, "sreng")).paths == ("src/engine.py",)
            assert (await sessions.files(name, "build")).paths == ()
            assert len((await sessions.files(name, "", 2)).paths) == 2

    run(story())


def test_letters_that_nearly_fit_cost_no_more_than_others():
    """A path is gone through once, however often its letters repeat."""
    assert fuzzy("a" * 99 + "z")("a" * 5000 + ".txt") is None
    assert fuzzy("abc")("xx/a-b--c.txt") == (3, 6, 13)
    assert fuzzy("xc")("xx/a-b--c.txt") == (3, 9, 13)


def test_a_rule_is_shown_with_what_it_would_have_covered(tmp_path):
    async def story():
        sessions = built(tmp_path, {"usual": [wrote("a.txt", "x\n"), "done"]})
        await sessions.start()
        name = await made(sessions)
        await sessions.send(name, PromptRequest("find the needle"), "ann")
        question, _ = await asked(sessions, name)
        await sessions.answer(name, question.call.id, yes(question), "ann")
        assert await ended(sessions, name) == "done"
        assert (await sessions.preview_rule(name, "allow: write(*.txt)")).calls == ("write a.txt",)
        assert (await sessions.preview_rule(name, "allow: write(*.md)")).calls == ()
        await refused(sessions.preview_rule(name, "perhaps: write"), BadRequest)
        (hit,) = (await sessions.search("NEEDLE")).hits
        assert (hit.session_id, hit.title) == (name, "find the needle")
        await refused(sessions.search("  "), BadRequest)
        page = b"".join([one async for one in sessions.export(name, "markdown")]).decode()
        assert "find the needle" in page
        assert "allowed by ann" in page
        await sessions.stop(5)

    run(story())


@pytest.mark.parametrize(
    "change", [SessionUpdate(title="  "), SessionUpdate(tags=("",)), SessionUpdate(title="x" * 501)]
)
def test_a_change_that_makes_no_sense_is_refused(tmp_path, change):
    async def story():
        async with serving(tmp_path, []) as sessions:
            name = await made(sessions)
            await refused(sessions.change(name, change, "ann"), BadRequest)

    run(story())
