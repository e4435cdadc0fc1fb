"""Every verb of a house, through an engine of our own and over a real server (A12, S8).

Each story is told twice; what is shown may differ in words, never in what it says.
"""

import asyncio
from contextlib import aclosing, asynccontextmanager

import pytest

from bridle.cli.setup import Setup
from bridle.client import Client
from bridle.errors import AgentError, SessionBusy
from bridle.protocols.session import NO, YES, Answer
from bridle.tui.remote_backend import RemoteBackend
from rig import run
from tui.rig import call, entered, own_house, script, workspace_in

WRITE = call("write", path="a.txt", content="new\n")


@asynccontextmanager
async def here(tmp_path, *replies):
    """A house of our own."""
    async with entered(own_house(tmp_path, *replies)) as house:
        yield house


@asynccontextmanager
async def there(tmp_path, *replies):
    """One on a server that `bridle serve` would be."""
    from bridle.cli.server_run import room_of
    from bridle.cli.server_setup import allowed_choices
    from bridle.server.app import Application
    from bridle.server.auth import AllowedHosts
    from bridle.server.http import ServerLifecycle, bind
    from bridle.server.login import Authenticator
    from bridle.server.middleware import Limits
    from bridle.server.tokens import Tokens

    folder = workspace_in(tmp_path)
    flags = {"workspaces": (str(folder),), "model": script(tmp_path, *replies)}
    setup = Setup({**flags, "workspace": str(folder)})
    door = Authenticator(Tokens(tmp_path / "server"))
    offer = allowed_choices(setup, (), "server")
    room = room_of(flags, setup.settings, door, Limits(rate=0), offer)
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    serving = ServerLifecycle(Application(room, AllowedHosts(port, "127.0.0.1")), listening)
    await serving.start()
    try:
        async with (
            Client(f"http://127.0.0.1:{port}", door.tokens.own) as client,
            entered(RemoteBackend(client, await client.session())) as house,
        ):
            yield house
    finally:
        await serving.stop(5)


@pytest.fixture(params=[here, there], ids=["here", "there"])
def opened(request, tmp_path):
    """A house, entered: `async with opened("reply", …) as house`."""
    return lambda *replies: request.param(tmp_path, *replies)


async def said(house, prompt):
    """One turn, to its end."""
    return await house.session.wait(await house.session.send(prompt))


async def asked_in(house, count=1):
    """The questions of all sessions, once there are so many."""
    return await seen(house.pending, lambda found: len(found) >= count)


async def seen(look, wanted):
    """What is looked at, once it is as it is wanted."""
    async with asyncio.timeout(240):
        while not wanted(found := await look()):  # noqa: ASYNC110 - as a person would
            await asyncio.sleep(0.02)
    return found


def test_a_prompt_is_answered_and_its_session_is_listed_found_and_previewed(opened):
    """A12"""

    async def story():
        async with opened("Hello there.") as house:
            assert (await said(house, "a greeting")).text == "Hello there."
            (one,) = await house.sessions()
            assert (one.id, one.title, one.state) == (house.session.id, "a greeting", "done")
            assert [two.id for two in await house.sessions("greet")] == [one.id]
            assert await house.sessions("nonsense") == ()
            (hit,) = {found.session_id for found in await house.search("Hello")}
            assert hit == one.id
            assert await house.preview(one.id) == "> a greeting\n\nHello there."

    run(story())


def test_a_question_is_pending_and_answered_and_a_second_answer_is_too_late(opened, tmp_path):
    """A12, P4"""

    async def story():
        async with opened(WRITE, "Done.") as house:
            turn = await house.session.send("go")
            (asked,) = await asked_in(house)
            assert asked.session_id == house.session.id
            assert asked.asked.call.arguments["path"] == "a.txt"
            (one,) = await house.sessions()
            assert (one.state, one.waiting) == ("waiting", 1)
            await house.answer(asked.session_id, asked.asked, YES)
            assert (await house.session.wait(turn)).text == "Done."
            with pytest.raises(AgentError):
                await house.answer(asked.session_id, asked.asked, NO)
            assert (tmp_path / "workspace/a.txt").read_text() == "new\n"
            assert await house.pending() == ()

    run(story())


def test_a_question_of_another_session_is_answered_from_here(opened, tmp_path):
    """A12: approvals show wherever the person is."""

    async def story():
        async with opened(WRITE, "Done.") as house:
            first = house.session.id
            await house.session.send("go")
            await asked_in(house)
            await house.renew()
            (asked,) = await asked_in(house)
            assert (asked.session_id, house.session.id == first) == (first, False)
            with pytest.raises(AgentError):
                await house.delete(first)
            await house.answer(first, asked.asked, Answer(False, word="not now"))
            await seen(lambda: house.sessions("go"), lambda found: found[0].state == "done")
            assert not (tmp_path / "workspace/a.txt").exists()

    run(story())


def test_what_a_turn_changed_is_previewed_and_put_back_and_a_changed_preview_does_nothing(
    opened, tmp_path
):
    async def story():
        file = tmp_path / "workspace/a.txt"
        workspace_in(tmp_path)
        file.write_text("old\n")
        async with opened(call("read", path="a.txt"), WRITE, "Done.") as house:
            await house.change_mode("edits")
            await said(house, "go")
            assert file.read_text() == "new\n"
            shown = await house.undo_preview()
            (change,) = shown.files
            assert (change.path, change.how, shown.turn) == ("a.txt", "changed", 1)
            assert "old" in change.diff and "new" in change.diff
            file.write_text("mine\n")
            with pytest.raises(AgentError):
                await house.undo(shown)
            assert file.read_text() == "mine\n"
            file.write_text("new\n")
            await house.undo(await house.undo_preview())
            assert file.read_text() == "old\n"
            with pytest.raises(AgentError):
                await house.undo_preview()

    run(story())


def test_modes_hold_from_before_the_first_prompt_and_a_new_session_has_the_usual_one(opened):
    """P4"""

    async def story():
        async with opened("ok") as house:
            assert house.mode == "ask"
            for mode in ("plan", "edits", "auto"):
                await house.change_mode(mode)
                assert house.mode == mode
            await house.renew()
            assert house.mode == "ask"

    run(story())


def test_fork_rewind_resume_rename_and_delete(opened):
    async def story():
        async with opened("One.", "Two.") as house:
            await said(house, "first")
            await said(house, "second")
            one = house.session.id
            await house.fork(None)
            copy = house.session.id
            assert copy != one
            await house.rewind(1)
            assert [m.content for m in house.session.history.transcript] == ["first", "One."]
            with pytest.raises(AgentError):
                await house.rewind(5)
            await house.rename(copy, "my copy")
            await house.rename(one, "the first")
            assert {o.id: o.title for o in await house.sessions()} == {
                copy: "my copy",
                one: "the first",
            }
            with pytest.raises(SessionBusy):
                await house.delete(copy)
            await house.resume(one.rpartition("-")[2])
            assert house.session.id == one
            await house.delete(copy)
            assert [o.id for o in await house.sessions()] == [one]
            with pytest.raises(AgentError):
                await house.resume("nonsense")
            assert house.session.id == one

    run(story())


def test_an_export_is_private_and_takes_no_other_file_s_place(opened, tmp_path):
    async def story():
        async with opened("One.") as house:
            await said(house, "first")
            place, size = await house.export(tmp_path / "kept.md", "markdown")
            assert place == tmp_path / "kept.md"
            assert (place.stat().st_mode & 0o777, place.stat().st_size) == (0o600, size)
            assert "One." in place.read_text()
            with pytest.raises(AgentError) as raised:
                await house.export(tmp_path / "kept.md", "jsonl")
            assert "was not changed" in raised.value.message
            await house.export(tmp_path / "kept.md", "jsonl", force=True)
            assert place.read_text().startswith('{"seq":1')
            with pytest.raises(AgentError):
                await house.export(tmp_path / "nowhere/kept.md", "jsonl")
            assert sorted(one.name for one in tmp_path.glob("*kept*")) == ["kept.md"]

    run(story())


def test_what_there_is_to_choose_and_to_work_with(opened):
    async def story():
        async with opened("One.") as house:
            models, agents = await house.models(), await house.agents()
            (chosen,) = (one.name for one in models if one.default)
            assert chosen.startswith("scripted:")  # by the name that it can be chosen by
            assert house.model not in [one.name for one in models]  # and once
            assert [one.name for one in agents if one.default] == ["loop"]
            tools = {one.name: one for one in await house.tools()}
            assert {"read", "write", "edit", "shell"} <= set(tools)
            assert all(one.label for one in tools.values())
            assert await house.mcp() == ()
            rules = await house.rules()
            assert rules[0].name == "mode: ask"
            lines = await house.doctor()
            assert any("python" in line for line in lines)

    run(story())


def test_a_folder_s_own_mcp_servers_are_told_with_why_they_are_not_used(opened, tmp_path):
    async def story():
        folder = workspace_in(tmp_path) / ".bridle"
        folder.mkdir()
        (folder / "mcp.yaml").write_text("servers:\n  notes:\n    command: [notes]\n")
        async with opened("One.") as house:
            (one,) = await house.mcp()
            assert "not used" in one.why_not and "bridle trust" in one.why_not

    run(story())


def test_a_budget_can_be_made_lower_and_not_higher(opened):
    async def story():
        async with opened("One.") as house:
            await said(house, "first")
            before = {name: most for name, _, most in await house.budget()}
            assert before["money, this session"] == "no limit"
            await house.set_budget(2.5)
            assert ("money, this session", "$2.50") in {
                (name, most) for name, _, most in await house.budget()
            }
            for sum_ in (3.0, -1.0, 0.0, float("nan"), float("inf")):
                with pytest.raises(AgentError):
                    await house.set_budget(sum_)

    run(story())


def test_files_are_found_by_a_few_letters_and_ignored_ones_are_left_out(opened, tmp_path):
    async def story():
        folder = workspace_in(tmp_path)
        (folder / ".git").mkdir()
        (folder / ".gitignore").write_text("ignored.py\n")
        for name in ("module.py", "ignored.py", "other.txt"):
            (folder / name).write_text("")
        async with opened("One.") as house:
            assert await house.files("mdl") == ("module.py",)
            assert await house.files("ignored") == ()
            assert "other.txt" in await house.files("")
            assert len(await house.files("", 1)) == 1

    run(story())


def test_news_come_when_a_session_changes(opened):
    async def story():
        async with opened("One.") as house, aclosing(house.news()) as news:
            waiting = asyncio.ensure_future(anext(news))
            try:
                await said(house, "first")
                async with asyncio.timeout(240):
                    await waiting
            finally:
                waiting.cancel()
                await asyncio.wait([waiting])

    run(story())


def test_the_rule_that_a_yes_would_make_is_shown_before_it_is_made(opened):
    async def story():
        shell = call("shell", command="make test")
        async with opened(shell, "Done.") as house:
            turn = await house.session.send("go")
            (asked,) = await asked_in(house)
            lines = await house.preview_rule(asked.session_id, asked.asked)
            assert len(lines) == 3 and asked.asked.proposal in lines[0]
            await house.answer(asked.session_id, asked.asked, NO)
            await house.session.wait(turn)

    run(story())


def test_a_prompt_that_waits_can_be_taken_back(opened):
    async def story():
        async with opened(WRITE, "Done.", "Never.") as house:
            turn = await house.session.send("go")
            (asked,) = await asked_in(house)
            await house.session.send("later", when="queue")
            (seq,) = house.session.history.waiting
            await house.session.withdraw(seq)
            assert not house.session.history.waiting
            await house.answer(asked.session_id, asked.asked, NO)
            assert (await house.session.wait(turn)).text == "Done."
            assert not house.session.is_busy

    run(story())
