"""Undo when files changed after the turn: the page and the Python client show it and can go on."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from bridle.client import Client
from bridle.errors import SessionError
from web.rig_page import PHONE
from web.stories import say

READ = say("", *(("read", {"path": f"{one}.txt"}) for one in "ab"))
TWO = say("", *(("write", {"path": f"{one}.txt", "content": "new\n"}) for one in "ab"))


@pytest.fixture
def clash(serve, window):
    """A turn has written a.txt and b.txt, and somebody has changed a.txt since."""
    served = serve(
        [READ, TWO, say("Done.")], {"a.txt": "old\n", "b.txt": "old\n"}, "--mode", "edits"
    )
    me = window(served)
    me.begin("write two files")
    me.has_ended()
    (served.workspace / "a.txt").write_text("mine\n")
    return served, me


def contents(served):
    return [(served.workspace / f"{one}.txt").read_text() for one in "ab"]


def test_a_file_that_changed_since_is_shown_and_can_be_skipped(clash):
    served, me = clash
    me.page.keyboard.press("Alt+u")
    dialog = me.page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 file changed after that turn")
    expect(dialog.locator(".undo-clash")).to_contain_text("+mine")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    assert contents(served) == ["mine\n", "new\n"]
    dialog.get_by_role("button", name="Undo 1 file, keep 1 changed file").click()
    expect(me.page.locator(".toasts")).to_contain_text("1 file was restored, a.txt was kept")
    expect(me.feed).to_contain_text("was undone")
    assert contents(served) == ["mine\n", "old\n"]
    me.is_well()


def test_a_file_that_changed_since_can_be_overwritten_also_if_it_is_the_only_one(clash):
    served, me = clash
    (served.workspace / "b.txt").write_text("old\n")
    me.page.keyboard.press("Alt+u")
    dialog = me.page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="keep")).to_have_count(0)
    dialog.get_by_role("button", name="Undo, overwriting 1 changed file").click()
    expect(me.feed).to_contain_text("was undone")
    assert contents(served) == ["old\n", "old\n"]


def test_a_folder_that_stays_because_of_a_kept_file_is_not_counted_and_a_phone_has_room(
    serve, window
):
    two = [("write", {"path": f"new/{one}.txt", "content": "new\n"}) for one in "ab"]
    served = serve([say("", *two), say("Done.")], {}, "--mode", "edits")
    me = window(served, viewport=PHONE)
    me.begin("write two files")
    me.has_ended()
    places = [one.bounding_box() for one in me.page.locator(".head .picker select").all()]
    for left, right in pairwise(places):
        assert left["x"] + left["width"] <= right["x"] + 1
    (served.workspace / "new" / "a.txt").write_text("mine\n")
    me.page.keyboard.press("Alt+u")
    dialog = me.page.get_by_role("dialog")
    row = dialog.locator(".dialog-row").bounding_box()
    for button in dialog.locator(".dialog-row button").all():
        assert button.bounding_box()["x"] >= row["x"] + 16
    dialog.get_by_role("button", name="Undo 1 file, keep 1 changed file").click()
    expect(me.page.locator(".toasts")).to_contain_text("1 file was restored, new/a.txt was kept.")


def test_the_button_that_overwrites_says_that_the_other_files_are_put_back_too(clash):
    served, me = clash
    me.page.keyboard.press("Alt+u")
    dialog = me.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Undo all 2 files, overwriting 1 changed file").click()
    expect(me.feed).to_contain_text("was undone")
    assert contents(served) == ["old\n", "old\n"]


def test_files_that_are_already_as_before_are_said_to_be_so(clash):
    served, me = clash
    for one in "ab":
        (served.workspace / f"{one}.txt").write_text("old\n")
    me.page.keyboard.press("Alt+u")
    expect(me.page.locator(".toasts")).to_contain_text("already as they were before turn 1")


def test_the_python_client_refuses_clashes_unless_it_is_told_what_to_do(clash):
    served, me = clash
    token = served.token("ann", "drive")

    async def work():
        async with Client(served.url, token) as client:
            session = await client.session(me.session)
            shown = await session.undo_preview()
            assert [(one.path, one.why) for one in shown.clashes] == [
                ("a.txt", "it was changed since")
            ]
            with pytest.raises(SessionError, match=r"a\.txt changed since"):
                await session.undo(shown)
            assert contents(served) == ["mine\n", "new\n"]
            await session.undo(shown, clashes="overwrite")

    with ThreadPoolExecutor() as pool:  # this thread has the loop of the browser
        pool.submit(asyncio.run, work()).result()
    assert contents(served) == ["old\n", "old\n"]


def test_a_fork_offers_to_undo_its_own_turns_and_no_others(serve, window):
    def write(name):
        return say("", ("write", {"path": name, "content": "new\n"}))

    served = serve(
        [write("a.txt"), say("Done."), write("b.txt"), say("Done.")], {}, "--mode", "edits"
    )
    me = window(served)
    first = me.begin("write a file")
    me.has_ended()
    details = me.page.get_by_role("complementary", name="Details of the session")
    expect(me.page.get_by_role("button", name="Undo")).to_have_count(3)
    me.page.get_by_role("button", name="More").click()
    me.page.get_by_role("menuitem", name="Fork from the end").click()
    expect(me.page).not_to_have_url(re.compile(first))
    expect(me.feed).to_contain_text("Forked here")
    expect(details).to_contain_text("a.txt")
    expect(me.page.get_by_role("button", name="Undo")).to_have_count(0)
    me.page.keyboard.press("Alt+u")
    expect(me.page.locator(".toasts")).to_contain_text("There is nothing to undo in this session.")
    me.send("write another file")
    me.has_ended(2)
    expect(me.page.get_by_role("button", name="Undo")).to_have_count(3)
    me.feed.get_by_role("button", name="Undo…").click()
    expect(me.page.get_by_role("dialog")).to_contain_text("Undo turn 2?")
    me.page.get_by_role("dialog").get_by_role("button", name="Undo 1 file").click()
    expect(me.feed).to_contain_text("was undone")
    assert [path.name for path in served.workspace.iterdir()] == ["a.txt"]
    me.is_well()
