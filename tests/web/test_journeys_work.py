"""Journeys of one person at the page: sign in, work, answer, undo, fork, with keys alone."""

import re

from playwright.sync_api import expect

from web.stories import BASKET, EDIT, FILES, LAST, MEND, PROMPT, READ, say

CLOCK = "now => { performance.now = () => now; }"  # the page's: it stands until it is set again


def test_the_first_start_signs_in_with_the_code_once_and_keeps_no_trace_of_it(serve, window):
    served = serve(MEND)
    stranger = window(served, signed_in=False)
    stranger.page.goto(served.url)
    expect(stranger.page.get_by_role("heading", name="Sign in")).to_be_visible()
    first = window(served)
    assert served.code not in first.page.url
    expect(first.page.get_by_role("main")).to_contain_text("Folder shop")
    expect(first.page.get_by_role("main")).to_contain_text("Signed in as the owner")
    first.page.reload()
    expect(first.page.get_by_role("heading", name="What would you like to do?")).to_be_visible()
    stranger.page.goto(f"{served.url}/#code={served.code}")
    stranger.page.reload()
    expect(
        stranger.page.get_by_role("heading", name=re.compile("no longer works|Sign in"))
    ).to_be_visible()
    assert all(served.code not in url for url in first.requests)
    first.is_well()


def test_a_prompt_streams_asks_with_a_diff_and_gives_a_result(serve, window):
    served = serve(MEND, FILES)
    me = window(served)
    session = me.begin(PROMPT)
    question = me.question("edit")
    expect(question).to_be_visible()
    expect(question.locator("td.row-gone mark")).to_have_text("10")
    expect(question.locator("td.row-new mark")).to_have_text("100")
    assert (served.workspace / "basket.py").read_text() == BASKET
    question.get_by_role("button", name="Allow once").click()
    expect(me.feed).to_contain_text(LAST)
    expect(me.feed).to_contain_text("Allowed by you")
    expect(me.page.locator(".account-line")).to_contain_text("Done")
    assert (served.workspace / "basket.py").read_text() == BASKET.replace("/ 10\n", "/ 100\n")
    answers = served.recorded(session, "approval_answered")
    assert [(one["allowed"], one.get("scope", "once")) for one in answers] == [(True, "once")]
    me.is_well()


def test_a_build_is_allowed_once_or_with_all_tests_and_builds_of_the_session(serve, window):
    make, test = ("shell", {"command": "make"}), ("shell", {"command": "make test"})
    replies = [say("", make), say("", make), say("", test), say(LAST)]
    served = serve(replies, {"Makefile": "all test:\n\t@echo built\n"})
    me = window(served)
    session = me.begin(PROMPT)
    me.question("this command").get_by_role("button", name="Allow once").click()
    expect(me.feed).to_contain_text("Allowed by you")
    for_session = "Allow for this session: tests and builds in this folder"
    me.question("this command").get_by_role("button", name=for_session).click()
    expect(me.feed).to_contain_text(LAST)
    answers = served.recorded(session, "approval_answered")
    assert [(one.get("scope", "once"), "until" in one) for one in answers] == [
        ("once", False),
        ("session", True),
    ]
    me.page.get_by_role("button", name="More to do").click()
    me.page.get_by_role("menuitem", name="Permissions").click()
    dialog = me.page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem")).to_have_count(1)
    expect(dialog).to_contain_text("tests and builds in")
    expect(dialog).to_contain_text("allowed by you, until")
    me.is_well()


def test_a_no_with_a_word_reaches_the_model_and_changes_nothing(serve, window):
    served = serve([READ, say("", EDIT), say("As you wish.")], FILES)
    me = window(served)
    session = me.begin(PROMPT)
    me.question("edit").get_by_role("button", name="Deny and say why").click()
    me.page.get_by_label("What should it do instead?").fill("use a constant")
    me.page.get_by_role("button", name="Deny with this message").click()
    expect(me.feed).to_contain_text("As you wish.")
    expect(me.feed).to_contain_text("Denied by you")
    assert (served.workspace / "basket.py").read_text() == BASKET
    said = served.recorded(session, "message")
    results = [one["result"]["text"] for one in said if one["role"] == "tool"]
    assert results[1:] == ["not run: approval was denied: use a constant"]


def test_everything_can_be_done_with_keys_alone(serve, window):
    served = serve(MEND, FILES)
    me = window(served)
    keys = me.page.keyboard
    me.page.evaluate(CLOCK, 1000)
    keys.press("Alt+n")
    keys.type(PROMPT)
    keys.press("Enter")
    expect(me.question("edit")).to_be_focused()
    keys.press("y")  # nobody asked for the focus to go there: this is still text
    expect(me.composer).to_be_focused()
    expect(me.composer).to_have_value("y")
    keys.press("Backspace")
    keys.press("Alt+q")
    expect(me.question("edit")).to_be_focused()
    keys.press("y")  # typed ahead: the question has only just got the focus
    expect(me.question("edit").get_by_role("button", name="Allow once")).to_be_enabled()
    me.page.evaluate(CLOCK, 1600)
    keys.press("y")
    expect(me.feed).to_contain_text(LAST)
    me.has_ended()
    keys.press("Alt+u")
    expect(me.page.get_by_role("dialog")).to_contain_text("Undo turn 1?")
    keys.press("Enter")
    expect(me.feed).to_contain_text("was undone")
    assert (served.workspace / "basket.py").read_text() == BASKET
    me.is_well()


def test_undo_shows_what_it_would_do_before_it_does_it(serve, window):
    served = serve(MEND, FILES, "--mode", "edits")
    me = window(served)
    me.begin(PROMPT)
    expect(me.feed).to_contain_text(LAST)
    me.feed.get_by_role("button", name="Undo…").click()
    dialog = me.page.get_by_role("dialog")
    expect(dialog.locator("td.row-new mark")).to_have_text("10")
    dialog.get_by_role("button", name="Cancel").click()
    assert (served.workspace / "basket.py").read_text() != BASKET
    me.feed.get_by_role("button", name="Undo…").click()
    dialog.get_by_role("button", name="Undo 1 file").click()
    expect(me.feed).to_contain_text("was undone")
    assert (served.workspace / "basket.py").read_text() == BASKET


def test_a_fork_goes_on_from_a_message_and_leaves_the_first_as_it_was(serve, window):
    served = serve([say("First answer."), say("Second answer."), say("Another way.")])
    me = window(served)
    first = me.begin("one")
    expect(me.feed).to_contain_text("First answer.")
    me.send("two")
    expect(me.feed).to_contain_text("Second answer.")
    me.has_ended(2)
    me.page.get_by_role("button", name="What to do with this reply").first.click()
    me.page.get_by_role("menuitem", name="Fork from here").click()
    expect(me.page).not_to_have_url(re.compile(first))
    expect(me.feed).to_contain_text("First answer.")
    expect(me.feed).not_to_contain_text("Second answer.")
    me.send("three")
    expect(me.feed).to_contain_text("Another way.")
    prompts = [one["content"] for one in served.recorded(first, "user_prompt")]
    assert prompts == ["one", "two"]
    me.is_well()
