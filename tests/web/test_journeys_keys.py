"""Keys on the page: what is typed is text, and only an approval that is seen takes an answer."""

import os
import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from web.stories import BASKET, EDIT, FILES, LAST, MEND, PROMPT, QUESTION, READ, say

WORDS = "merge the branch, fix the tests, then yes: undo it, now"  # each letter was a command once
FOUR = [("write", {"path": f"f{number}.txt", "content": f"{number}\n" * 30}) for number in range(4)]
CLOCK = "now => { performance.now = () => now; }"  # the page's: it stands until it is set again
HEIGHT = 900
MOST = 60  # steps of the page's clock


def stands_still(me):
    """From here on the page's clock moves by `goes_on` alone."""
    now = me.page.evaluate("Date.now()") + 60_000
    me.page.clock.pause_at(datetime.fromtimestamp(now / 1000, UTC))


def goes_on(me, wanted):
    """Let the page's clock move by about half a second at most until that holds."""
    for _ in range(MOST):
        if wanted():
            return
        me.page.clock.run_for(9)
        me.page.wait_for_timeout(50)
    raise AssertionError("that did not come to pass")


def armed(me):
    """Let the moment pass in which an approval that has just got the focus takes no key."""
    me.page.evaluate(CLOCK, me.page.evaluate("performance.now()") + 1000)


def is_where_it_can_be_answered(me, approval):
    expect(approval).to_be_focused()
    expect(approval.locator(".question-head")).to_be_in_viewport(ratio=1)
    for button in approval.locator(".answers button").all():
        expect(button).to_be_in_viewport(ratio=1)


def test_words_that_are_typed_without_looking_are_the_prompt_and_never_commands(serve, window):
    served = serve(MEND, FILES)
    me = window(served)
    for when in ("on first open", "after a reload"):
        expect(me.composer, when).to_be_focused()
        me.page.keyboard.type(WORDS)
        expect(me.composer, when).to_have_value(WORDS)
        me.composer.fill("")
        me.page.reload()
    me.begin(PROMPT)
    me.page.keyboard.type(WORDS)
    expect(me.composer).to_have_value(WORDS)
    me.composer.fill("")
    me.question("edit").locator(".answers button").first.click()
    me.has_ended()
    me.page.keyboard.type(WORDS)
    expect(me.composer, "after the last answer").to_have_value(WORDS)
    me.composer.fill("")
    me.page.reload()
    expect(me.feed).to_contain_text(LAST)
    me.page.keyboard.type(WORDS)
    expect(me.composer, "in a session that was opened again").to_have_value(WORDS)
    me.composer.fill("")
    me.feed.get_by_text(LAST).click()
    me.page.keyboard.type(WORDS)
    expect(me.composer, "after a click on the conversation").to_have_value(WORDS)
    me.composer.fill("")
    me.page.locator("#mode").focus()
    me.page.keyboard.type(WORDS)
    expect(me.composer, "with the focus on the list of modes").to_have_value(WORDS)
    expect(me.page.locator("#mode")).to_have_value("ask")
    expect(me.page.locator(".session")).to_have_count(1)
    expect(me.page.get_by_role("dialog")).to_have_count(0)
    me.is_well()


def test_words_that_are_typed_with_a_menu_open_choose_nothing_of_it(serve, window):
    """The space between two words chose the entry that has the focus: undo, or a fork."""
    me = window(serve([say("Hi.")]))
    me.begin("hello")
    me.has_ended()
    menus = me.page.get_by_role("menu")
    for name in ("More", "What to do with this prompt"):
        me.page.get_by_role("button", name=name).click()
        expect(menus.get_by_role("menuitem").first).to_be_focused()
        me.page.keyboard.type(WORDS)
        expect(menus, name).to_have_count(0)
        expect(me.composer, name).to_have_value(WORDS)
        me.composer.fill("")
    me.page.get_by_role("button", name="More").click()
    expect(menus.get_by_role("menuitem").first).to_be_focused()
    me.page.get_by_role("menuitem", name="Keys…").click()
    expect(me.page.get_by_role("dialog")).to_contain_text("Go to")
    me.is_well()


def test_a_mode_that_allows_more_is_confirmed_first(serve, window):
    served = serve([say("Hi.")])
    me = window(served)
    session = me.begin("hello")
    me.has_ended()
    mode = me.page.locator("#mode")
    me.page.keyboard.press("Alt+m")
    expect(mode).to_be_focused()
    mode.select_option("edits")
    dialog = me.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Edit files without asking?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    me.page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(mode).to_have_value("ask")
    mode.select_option("plan")
    expect(mode).to_have_value("plan")
    assert [one["mode"] for one in served.recorded(session, "mode")] == ["plan"]


def test_an_approval_that_was_scrolled_away_is_shown_before_a_key_can_answer_it(serve, window):
    served = serve([say("", *FOUR), say("Done.")])
    me = window(served, viewport={"width": 1440, "height": HEIGHT})
    session = me.begin("write four files")
    approvals = [me.question(f"f{number}.txt") for number in range(4)]
    is_where_it_can_be_answered(me, approvals[0])
    me.page.locator(".feed").evaluate("one => one.scrollTo(0, one.scrollHeight)")
    expect(approvals[3]).to_be_in_viewport(ratio=0.5)
    expect(approvals[0]).not_to_be_in_viewport()
    armed(me)
    me.page.keyboard.press("y")
    is_where_it_can_be_answered(me, approvals[0])
    assert served.recorded(session, "approval_answered") == []
    for number in range(4):
        is_where_it_can_be_answered(me, me.question(f"f{number}.txt"))
        armed(me)
        me.page.keyboard.press("y")
        expect(me.question(f"f{number}.txt")).to_have_count(0)
    expect(me.composer).to_be_focused()
    expect(me.page.locator(".account-line")).to_be_in_viewport()
    assert len(served.recorded(session, "approval_answered")) == 4
    me.is_well()


def test_enter_on_a_button_that_was_scrolled_away_answers_nothing(serve, window):
    served = serve([say("", *FOUR), say("Done.")])
    me = window(served, viewport={"width": 1440, "height": HEIGHT})
    session = me.begin("write four files")
    is_where_it_can_be_answered(me, me.question("f0.txt"))
    button = me.question("f0.txt").locator(".answers button").first
    button.focus()
    me.page.locator(".feed").evaluate("one => one.scrollTo(0, one.scrollHeight)")
    expect(button).not_to_be_in_viewport()
    me.page.keyboard.press("Enter")
    expect(button).to_be_in_viewport(ratio=1)
    assert served.recorded(session, "approval_answered") == []
    me.page.keyboard.press("Enter")
    expect(me.question("f0.txt")).to_have_count(0)


def test_of_a_change_longer_than_the_screen_heading_and_buttons_stay_in_view(serve, window):
    lines = "".join(f"line {number}\n" for number in range(300))
    served = serve([say("", ("write", {"path": "long.txt", "content": lines})), say("Done.")])
    me = window(served)
    session = me.begin("write a long file")
    approval = me.question("long.txt")
    is_where_it_can_be_answered(me, approval)
    armed(me)
    me.page.keyboard.press("y")
    expect(me.feed).to_contain_text("Done.")
    assert [one["allowed"] for one in served.recorded(session, "approval_answered")] == [True]


@pytest.mark.parametrize("written", ["half a thought", ""])
def test_an_approval_takes_the_focus_from_an_empty_composer_alone(serve, window, written):
    served = serve(
        [say("", ("shell", {"command": "cat gate"})), READ, say("", EDIT), say(LAST)], FILES
    )
    os.mkfifo(gate := served.workspace / "gate")
    me = window(served, signed_in=False)
    me.page.clock.install()
    me.sign_in()
    session = me.begin(PROMPT)
    expect(me.page.locator(".call-status")).to_have_text("running")
    expect(me.composer).to_be_focused()
    me.page.keyboard.type(written)
    gate.write_text("")
    expect(me.question("edit").locator("td.row-new mark")).to_have_text("100")
    me.page.clock.fast_forward(3000)  # nobody is typing any more
    me.page.clock.run_for(200)
    if not written:
        is_where_it_can_be_answered(me, me.question("edit"))
        return
    expect(me.composer).to_be_focused()
    me.page.keyboard.type(", and yes")
    expect(me.composer).to_have_value(f"{written}, and yes")
    me.page.keyboard.press("Alt+q")
    is_where_it_can_be_answered(me, me.question("edit"))
    armed(me)
    me.page.keyboard.press("n")
    expect(me.feed).to_contain_text("Denied by you")
    expect(me.composer).to_be_focused()
    expect(me.composer).to_have_value(f"{written}, and yes")
    assert [one["allowed"] for one in served.recorded(session, "approval_answered")] == [False]
    assert (served.workspace / "basket.py").read_text() == BASKET


def test_an_approval_takes_the_focus_from_nobody_who_is_typing(serve, window):
    served = serve(
        [say("", ("shell", {"command": "cat gate"})), READ, say("", EDIT), say(LAST)], FILES
    )
    os.mkfifo(gate := served.workspace / "gate")
    me = window(served, signed_in=False)
    me.page.clock.install()
    me.sign_in()
    me.begin(PROMPT)
    expect(me.page.locator(".call-status")).to_have_text("running")
    stands_still(me)
    me.page.keyboard.type("no")
    me.page.keyboard.press("Backspace")
    me.page.keyboard.press("Backspace")
    gate.write_text("")
    goes_on(me, lambda: me.question("edit").locator("td.row-new mark").count())
    me.page.clock.run_for(200)
    expect(me.composer).to_be_focused()
    me.page.clock.run_for(3000)
    is_where_it_can_be_answered(me, me.question("edit"))


def test_an_approval_that_follows_an_answer_by_key_gets_the_focus_at_once(serve, window):
    wait = say("", ("shell", {"command": "cat gate"}))
    served = serve([say("", FOUR[0]), wait, say("", FOUR[1]), say("Done.")])
    os.mkfifo(gate := served.workspace / "gate")
    me = window(served, signed_in=False)
    me.page.clock.install()
    me.sign_in()
    me.begin("write two files")
    is_where_it_can_be_answered(me, me.question("f0.txt"))
    stands_still(me)
    me.page.keyboard.press("y")
    goes_on(me, lambda: me.page.locator("#composer:focus").count())
    goes_on(me, lambda: me.page.locator(".call-status").get_by_text("running").count())
    gate.write_text("")
    goes_on(me, lambda: me.page.locator(".question:focus").filter(has_text="f1.txt").count())


def test_an_answer_in_other_words_is_typed_without_going_to_its_field_first(serve, window):
    served = serve([QUESTION, say("MySQL it is.")])
    me = window(served)
    session = me.begin("which one?")
    is_where_it_can_be_answered(me, me.question("Which database"))
    armed(me)
    me.page.keyboard.type("none of these, MySQL")
    field = me.page.get_by_label("Or in other words")
    expect(field).to_have_value("none of these, MySQL")
    me.page.keyboard.press("Enter")
    expect(me.feed).to_contain_text("MySQL it is.")
    [answer] = served.recorded(session, "approval_answered")
    assert (answer["allowed"], answer["word"]) == (True, "none of these, MySQL")


PRESS = """key => {
  const options = { key, bubbles: true, cancelable: true };
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", options));
  return new Promise((done) => setTimeout(() => done(document.activeElement.tagName)));
}"""  # no frame is drawn before it says where the next key would go


@pytest.mark.parametrize(("key", "field"), [("w", "TEXTAREA"), ("r", "INPUT")])
def test_what_is_typed_at_once_after_the_key_that_opens_a_form_goes_into_its_field(
    serve, window, key, field
):
    """The first letter was lost; it may be one that answers."""
    me = window(serve(MEND, FILES))
    me.begin(PROMPT)
    approval = me.question("edit")
    approval.focus()
    armed(me)
    assert me.page.evaluate(PRESS, key) == field
    me.is_well()


def test_commands_with_arrows_work_from_the_composer_too(serve, window):
    """The previous session was the previous prompt instead."""
    me = window(serve([say("One."), say("Two.")]))
    first = me.begin("first")
    me.has_ended()
    me.page.keyboard.press("Alt+n")
    second = me.begin("second")
    me.has_ended()
    for key, session in (("Alt+ArrowDown", first), ("Alt+ArrowUp", second)):
        me.composer.focus()
        me.page.keyboard.press(key)
        expect(me.page).to_have_url(re.compile(session))
        expect(me.composer).to_have_value("")
    me.is_well()
