"""Journeys of several people, and through what goes wrong: reloads, lost lines, kill -9."""

import os
import re

from playwright.sync_api import expect

from web.rig_page import until
from web.stories import BASKET, FILES, LAST, MEND, PROMPT, say

LONG = " ".join(f"word{number}" for number in range(200))


def with_token(window, served, name, role):
    """Somebody else's window, signed in with a token of their own."""
    other = window(served, signed_in=False)
    other.page.goto(served.url)
    other.page.get_by_label("Token", exact=True).fill(served.token(name, role))
    other.page.get_by_role("button", name="Sign in with the token").click()
    expect(other.page.get_by_role("navigation", name="Sessions")).to_be_visible()
    return other


def test_the_first_answer_wins_and_both_windows_agree(serve, window):
    served = serve(MEND, FILES)
    me = window(served)
    session = me.begin(PROMPT)
    bob = with_token(window, served, "bob", "answer")
    bob.page.goto(f"{served.url}/#/s/{session}")
    for one in (me, bob):
        expect(one.question("edit")).to_be_visible()
    bob.question("edit").get_by_role("button", name="Allow once").click()
    expect(me.feed).to_contain_text("Allowed by bob")
    expect(bob.feed).to_contain_text("Allowed by you")
    for one in (me, bob):
        expect(one.feed).to_contain_text(LAST)
        expect(one.question()).to_have_count(0)
    answers = served.recorded(session, "approval_answered")
    assert [(one["by"], one["allowed"]) for one in answers] == [("bob", True)]
    expect(bob.page.locator("#composer")).to_have_count(0)  # who may answer may not drive


def test_of_two_answers_at_once_one_counts_and_the_other_is_told(serve, window):
    served = serve(MEND, FILES)
    me = window(served)
    session = me.begin(PROMPT)
    expect(me.question("edit")).to_be_visible()
    bob = with_token(window, served, "bob", "answer")
    bob.page.route("**/stream**", lambda route: route.abort())  # bob hears nothing more
    bob.page.goto(f"{served.url}/#/s/{session}")
    expect(bob.question("edit")).to_be_visible()
    me.question("edit").get_by_role("button", name="Deny", exact=False).first.click()
    expect(me.feed).to_contain_text("Denied by you")
    bob.question("edit").get_by_role("button", name="Allow once").click()
    expect(bob.page.locator(".toasts")).not_to_be_empty()
    assert (served.workspace / "basket.py").read_text() == BASKET
    answers = served.recorded(session, "approval_answered")
    assert [(one.get("by", "me"), one["allowed"]) for one in answers] == [("me", False)]


def test_a_reload_in_the_middle_of_a_reply_loses_and_repeats_nothing(serve, window):
    served = serve([say(LONG, pause=0.005)])
    me = window(served)
    me.begin("say many words")
    expect(me.feed).to_contain_text("word20")
    me.page.reload()
    expect(me.feed).to_contain_text("word199")
    said = me.page.locator(".reply .md").inner_text()
    assert said == LONG
    me.is_well()


def test_a_line_that_stalls_is_noticed_in_15_seconds_and_nothing_is_lost_or_repeated(
    serve, window, line_to
):
    wait = ("shell", {"command": "cat gate"})
    served = serve([say("Before the stall.", wait), say("During the stall."), say("After it.")], {})
    os.mkfifo(gate := served.workspace / "gate")
    line = line_to(served)
    me = window(served, signed_in=False)
    me.page.clock.install()
    me.sign_in()
    session = me.begin("go")
    expect(me.page.locator(".call-status")).to_have_text("running")
    line.stall()
    gate.write_text("")
    until(me.page, lambda: served.recorded(session, "turn_end"))
    me.page.clock.fast_forward(15_000)
    expect(me.page.locator(".line")).to_have_text("Reconnecting…")
    me.page.clock.fast_forward(15_000)  # the next try finds the line stalled as well
    expect(me.page.locator(".line")).to_have_text("Reconnecting…")
    expect(me.feed).not_to_contain_text("During the stall.")
    line.heal()
    me.has_ended()
    expect(me.page.locator(".line")).not_to_contain_text("Reconnecting")
    me.send("and now?")
    me.has_ended(2)
    replies = me.page.locator(".reply .md")
    expect(replies).to_have_text(["Before the stall.", "During the stall.", "After it."])
    expect(me.page.locator(".prompt-text")).to_have_text(["go", "and now?"])
    expect(me.page.locator(".call")).to_have_count(1)
    me.is_well()


def test_an_answer_that_is_given_while_the_line_stalls_arrives_once(serve, window, line_to):
    served = serve([*MEND, say("And this.")], FILES)
    line = line_to(served)
    me = window(served, signed_in=False)
    me.page.clock.install()
    me.sign_in()
    session = me.begin(PROMPT)
    expect(me.question("edit")).to_be_visible()
    line.stall()
    me.question("edit").get_by_role("button", name="Allow once").click()
    me.send("and then?")
    for _ in range(2):
        me.page.clock.fast_forward(21_000)
        expect(me.page.locator(".line")).to_have_text("Reconnecting…")
    assert served.recorded(session, "approval_answered") == []
    line.begin_anew()
    me.page.clock.fast_forward(21_000)
    me.has_ended(2)
    expect(me.feed).to_contain_text("And this.")
    expect(me.page.locator(".toasts")).to_be_empty()
    assert len(served.recorded(session, "approval_answered")) == 1
    assert len(served.recorded(session, "user_prompt")) == 2
    me.is_well()


def test_a_reply_that_is_cut_off_by_a_kill_is_kept_as_far_as_it_came(serve, window):
    served = serve([say(LONG, pause=600, chunk=LONG.index("word30"))])  # and the rest never comes
    me = window(served)
    me.begin("say many words")
    expect(me.feed).to_contain_text("word20")
    served.kill()
    expect(me.page.locator(".line")).to_contain_text("Reconnecting")
    served.say([say("All of it this time.")])
    served.start()
    expect(me.feed).to_contain_text("Stopped")
    said = me.page.locator(".reply .md").inner_text()
    assert LONG.startswith(said) and "word20" in said
    me.send("again")
    expect(me.feed).to_contain_text("All of it this time.")
    me.is_well()


def test_a_server_that_is_killed_comes_back_and_the_page_goes_on_by_itself(serve, window):
    served = serve(MEND, FILES)
    me = window(served)
    session = me.begin(PROMPT)
    expect(me.question("edit")).to_be_visible()
    served.kill()
    expect(me.page.locator(".line")).to_contain_text("Reconnecting")
    served.say([say(LAST)])  # what the model would have said next
    served.start()
    expect(me.page.locator(".line")).not_to_contain_text("Reconnecting")
    me.question("edit").get_by_role("button", name="Allow once").click()
    expect(me.feed).to_contain_text(LAST)
    assert (served.workspace / "basket.py").read_text() == BASKET.replace("/ 10\n", "/ 100\n")
    me.has_ended()
    assert len(served.recorded(session, "intent")) == 2  # one read, one edit: none ran twice
    me.is_well()


def test_an_older_session_is_found_by_search_and_goes_on_where_it_stood(serve, window):
    served = serve([say("The answer is 42, as **saddles** are."), say("Then there are 43.")])
    me = window(served)
    session = me.begin("count the saddles")
    expect(me.feed).to_contain_text("The answer is 42")
    me.has_ended()
    served.stop()
    served.say([say("Then there are 43.")])
    served.start()
    me.page.goto(served.url)
    me.page.reload()
    me.page.get_by_role("searchbox", name="Search all sessions").fill("saddles")
    me.page.get_by_role("region", name="Found in conversations").get_by_role("link").first.click()
    expect(me.page).to_have_url(re.compile(session))
    expect(me.feed).to_contain_text("The answer is 42")
    me.send("and one more?")
    expect(me.feed).to_contain_text("Then there are 43.")
