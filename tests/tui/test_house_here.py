"""A house with an engine of its own: sessions, modes, models, moving about (A9, A12, P4)."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridle.cli.local_backend import local_backend as make_house
from bridle.errors import AgentError, SessionBusy, SessionError
from bridle.stores.recorded_mode import recorded_mode
from rig import run
from tui.rig import call, entered, own_house, script, workspace_in


def test_a_house_is_entered_in_a_new_session_of_which_nothing_is_written(tmp_path):
    """A9"""

    async def story():
        async with entered(own_house(tmp_path, "Hello.")) as house:
            assert (house.is_begun, house.mode, house.began) == (False, "ask", 0)
            assert house.place.workspace == str(tmp_path / "workspace")
            assert await house.sessions() == ()
            turn = await house.session.send("hi")
            assert (await house.session.wait(turn)).text == "Hello."
            assert house.is_begun
            (one,) = await house.sessions()
            assert (one.id, one.title, one.state, one.holder) == (
                house.session.id,
                "hi",
                "done",
                "here",
            )

    run(story())


def test_a_mode_that_is_chosen_before_the_first_prompt_holds_and_a_new_session_has_the_usual(
    tmp_path,
):
    """P4: what is shown before the first prompt is what holds; `/new` does not inherit auto."""

    async def story():
        write = call("write", path="a.txt", content="a")
        async with entered(own_house(tmp_path, write, "Done.", write, "Not done.")) as house:
            await house.change_mode("auto")
            assert house.mode == "auto"
            await house.session.wait(await house.session.send("go"))
            assert (tmp_path / "workspace/a.txt").read_text() == "a"
            await house.renew()
            assert house.mode == "ask"

    run(story())


def test_plan_mode_that_is_chosen_before_the_first_prompt_writes_nothing(tmp_path):
    """P4"""

    async def story():
        write = call("write", path="a.txt", content="a")
        async with entered(own_house(tmp_path, write, "I may not.")) as house:
            await house.change_mode("plan")
            result = await house.session.wait(await house.session.send("go"))
            assert result.text == "I may not."
            assert not (tmp_path / "workspace/a.txt").exists()

    run(story())


def test_the_mode_of_a_flag_is_that_of_every_new_session(tmp_path):
    async def story():
        async with entered(own_house(tmp_path, "ok", mode="edits")) as house:
            assert house.mode == "edits"
            await house.renew()
            assert house.mode == "edits"

    run(story())


def test_a_session_that_is_left_while_its_turn_runs_goes_on_and_can_be_come_back_to(tmp_path):
    async def story():
        slow = {"text": "Slowly.", "delay": 0.5}
        async with entered(own_house(tmp_path, slow)) as house:
            first = house.session
            turn = await first.send("go")
            await house.renew()
            assert house.session is not first
            assert (await first.wait(turn)).text == "Slowly."
            await house.resume(first.id.rpartition("-")[2])
            assert house.session is first

    run(story())


def test_another_model_goes_on_with_the_same_session_and_one_that_is_not_there_changes_nothing(
    tmp_path,
):
    async def story():
        async with entered(own_house(tmp_path, "One.")) as house:
            await house.session.wait(await house.session.send("hi"))
            name, model = house.session.id, house.model
            with pytest.raises(AgentError):
                await house.change_model("nonsense/x")
            assert (house.session.id, house.model) == (name, model)
            await house.change_model(script(tmp_path, "Two.", name="other"))
            assert house.session.id == name
            result = await house.session.wait(await house.session.send("again"))
            assert result.text == "Two."

    run(story())


def of_the_future(log):
    """Have it as a newer version would write it."""
    log.write_bytes(log.read_bytes().replace(b'"format":1', b'"format":99'))


def test_who_comes_back_from_a_session_that_could_not_be_had_is_still_known_by_their_mode(tmp_path):
    """A12, P4: others who look at the session are shown the mode that holds."""

    async def story():
        async with entered(own_house(tmp_path / "other", "One.")) as house:
            await house.session.wait(await house.session.send("hi"))
            name, log = house.session.id, Path(house.session.log_path)
        of_the_future(log)
        async with entered(own_house(tmp_path, "One.", "Two.", mode="edits")) as house:
            await house.session.wait(await house.session.send("hi"))
            mine = house.session.id
            with pytest.raises(AgentError):
                await house.resume(name)
            await house.session.wait(await house.session.send("more"))
            assert (house.session.id, house.mode) == (mine, "edits")
            assert recorded_mode(Path(house.session.log_path)) == "edits"

    (tmp_path / "other").mkdir()
    run(story())


def test_fork_and_rewind_need_something_that_was_said(tmp_path):
    async def story():
        async with entered(own_house(tmp_path, "One.", "Two.")) as house:
            for verb in (house.fork(None), house.rewind(1), house.undo_preview()):
                with pytest.raises(SessionError):
                    await verb
            await house.session.wait(await house.session.send("hi"))
            first = house.session.id
            await house.fork(None)
            assert house.session.id != first
            assert await house.rewind(1) >= 0
            assert not list(house.session.history.transcript)

    run(story())


def test_the_session_that_one_is_in_is_not_deleted_and_another_is(tmp_path):
    async def story():
        async with entered(own_house(tmp_path, "One.", "Two.")) as house:
            await house.session.wait(await house.session.send("hi"))
            first = house.session.id
            with pytest.raises(SessionBusy):
                await house.delete(first)
            await house.renew()
            await house.delete(first)
            assert await house.sessions() == ()

    run(story())


def test_a_house_is_entered_without_what_talks_http_or_draws_a_screen(tmp_path):
    """Opening is quick: what most people do not need is not loaded."""
    code = (
        "import asyncio, sys\n"
        "from bridle.cli.local_backend import local_backend\n"
        "async def story():\n"
        "    house = local_backend({'model': sys.argv[1], 'workspace': sys.argv[2]})\n"
        "    await house.enter()\n"
        "    assert house.mode == 'ask' and house.commands() == ()\n"
        "    await house.leave()\n"
        "asyncio.run(story())\n"
        "heavy = ('aiohttp', 'starlette', 'textual', 'bridle.server', 'bridle.client')\n"
        "assert [name for name in heavy if name in sys.modules] == []\n"
    )
    words = [sys.executable, "-c", code, script(tmp_path, "ok"), str(workspace_in(tmp_path))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


def test_what_the_settings_complain_of_is_a_remark_and_not_on_the_terminal(tmp_path, capfd):
    async def story():
        folder = workspace_in(tmp_path)
        (folder / "AGENTS.md").write_text("be good\n")
        flags = {"workspace": str(folder), "model": script(tmp_path, "ok")}
        async with entered(make_house(flags)) as house:
            (said,) = house.remarks()
            assert "AGENTS.md is not used until you trust the folder" in said
            assert house.remarks() == ()

    run(story())
    assert capfd.readouterr().err == ""


def test_a_house_that_could_not_be_entered_can_be_left(tmp_path):
    async def story():
        house = own_house(tmp_path, "ok")
        house.setup.settings = replace(house.setup.settings, model="nonsense/x", provider="")
        with pytest.raises(AgentError):
            await house.enter()
        await house.leave()
        assert house.again() == ""

    run(story())
