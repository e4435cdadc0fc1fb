"""Questions of other sessions: the line, the page, answers that go to their own session (A12)."""

import asyncio

from bridle.errors import Unreachable
from bridle.protocols.session import Answer
from bridle.tui.screens.approvals import approval_row, pending_text, send_answer
from bridle.tui.widgets.approval_panel import ApprovalPanel
from rig import run
from tui.question_rig import asked
from tui.rig import call, own_house
from tui.screen_rig import app_at, say, seen, shows, until


def test_the_line_counts_and_names_and_fits():
    one = asked(session="a", title="Mend the docs")
    two = asked("two", session="b", title="Evil\x1b]2;x\x07\ntitle")
    assert pending_text([], 80) == ""
    assert pending_text([one], 80) == "1 approval needed in other sessions (F3): Mend the docs"
    said = pending_text([one, two, one], 200)
    assert said.startswith(
        "3 approvals needed in other sessions (F3): Mend the docs, Evil\\x1b]2;x"
    )
    assert said.isprintable()
    assert len(pending_text([one, two], 30)) <= 30
    assert pending_text([asked(session="20260101-x")], 80).endswith(": 20260101-x")


def test_a_row_says_whose_it_is_and_what_it_is_about():
    one = asked(session="a", title="Docs", arguments={"command": "rm -r\n\x1b[2Jx"})
    assert approval_row(one) == "Docs · shell · rm -r \\x1b[2Jx"
    assert approval_row(asked(title="Docs", name="t", arguments={"n": 1})) == 'Docs · t · {"n":1}'


async def begin(pilot, house, prompt):
    """A session whose question stays behind."""
    await say(pilot, prompt, wait=False)
    await until(pilot, lambda: pilot.app.main.approvals.panel.is_open)
    await house.renew()
    await pilot.app.main.session.rejoin()
    await until(pilot, lambda: pilot.app.main.composer.has_pseudo_class("focus-within"))


def test_every_one_of_several_is_answered_in_its_own_session(tmp_path):
    async def story():
        made = [call("shell", command=f"touch made-{at}") for at in (1, 2)]
        house = own_house(tmp_path, made[0], made[1], "Done.", "Done.")
        async with app_at(house, size=(100, 30)) as pilot:
            await begin(pilot, house, "first")
            await begin(pilot, house, "second")
            await shows(pilot, "2 approvals needed in other sessions")
            await pilot.press("f3")
            page = pilot.app.screen
            panel = page.panel
            panel._guard._quiet = 0.0
            await until(pilot, lambda: panel.is_armed and len(panel.waiting) == 2)
            first, second = (one.title for one in panel.waiting)
            assert f"› {first}" in seen(pilot)
            await pilot.press("tab")
            await until(pilot, lambda: panel.is_armed and f"› {second}" in seen(pilot))
            wanted = panel.current.asked.call.arguments["command"].split(" ")[1]
            await pilot.press("y")
            folder = tmp_path / "workspace"
            await until(pilot, lambda: (folder / wanted).exists())
            await until(pilot, lambda: panel.is_armed and len(panel.waiting) == 1)
            await pilot.press("n")
            await shows(pilot, "No session needs approval.")
            assert [one.name for one in folder.iterdir()] == [wanted]
            await pilot.press("f3")
            await until(pilot, lambda: pilot.app.screen is pilot.app.main)

    run(story())


def test_what_comes_when_the_page_was_just_left_breaks_nothing(tmp_path):
    """An answer is given and the page left at once: what waits now is looked for meanwhile."""

    async def story():
        house = own_house(tmp_path, call("shell", command="touch made"), "Done.")
        async with app_at(house, size=(100, 30)) as pilot:
            await begin(pilot, house, "first")
            await shows(pilot, "1 approval needed in other sessions")
            await pilot.press("f3")
            await shows(pilot, "$ touch made")
            page, (one,) = pilot.app.screen, await house.pending()
            gate = asyncio.Event()

            async def slow(*given):
                await gate.wait()
                return "a rule", "covers much"

            house.preview_rule = slow
            looking = asyncio.ensure_future(
                ApprovalPanel._preview_rule.__wrapped__(page.panel, one)
            )
            await shows(pilot, "Checking which past calls the rule would have covered")
            await pilot.press("escape")
            await until(pilot, lambda: not page.panel.children)
            gate.set()
            await looking
            await page._refresh().wait()

            async def refuse(*given):
                raise Unreachable("nobody is there")

            house.answer = refuse
            given = ApprovalPanel.Answered(one.session_id, one, Answer(True), None)
            assert not await send_answer(house, page.panel, given)
            await shows(pilot, "nobody is there")

    run(story())


def test_the_page_says_so_where_nothing_waits(tmp_path):
    async def story():
        async with app_at(own_house(tmp_path, "Hi."), size=(60, 20)) as pilot:
            await pilot.press("f3")
            await shows(pilot, "No session needs approval.")
            await pilot.press("escape")
            await until(pilot, lambda: pilot.app.screen is pilot.app.main)

    run(story())


def test_ctrl_c_closes_what_is_being_written_and_then_the_page(tmp_path):
    async def story():
        house = own_house(tmp_path, call("shell", command="touch made"), "Done.")
        async with app_at(house, size=(100, 30)) as pilot:
            await begin(pilot, house, "first")
            await pilot.press("f3")
            panel = pilot.app.screen.panel
            panel._guard._quiet = 0.0
            await until(pilot, lambda: panel.is_armed)
            await pilot.press("w")
            await until(pilot, lambda: panel.note.is_open)
            await pilot.press("ctrl+c")
            await until(pilot, lambda: not panel.note.is_open)
            assert pilot.app.screen is not pilot.app.main
            await pilot.press("ctrl+c")
            await until(pilot, lambda: pilot.app.screen is pilot.app.main)
            assert not (tmp_path / "workspace/made").exists()

    run(story())
