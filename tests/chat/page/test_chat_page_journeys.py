"""Real Chromium in front of a real chat: signing in, talking, the list, two users (T3, T5)."""

import re

from playwright.sync_api import expect

from web.rig_page import PHONE, until


def test_sign_in_add_list_complete_ambiguous_and_delete_with_confirmation(window):
    """(T5) The whole of it in one sitting; the list beside the chat changes as one talks."""
    me = window("ana")
    expect(me.tasks.get_by_text("Buy milk")).to_be_visible()
    me.say("add buy bread", "Got it! Added 'buy bread' to your list. Anything else?")
    expect(me.tasks.get_by_text("buy bread")).to_be_visible()
    expect(me.tasks.get_by_role("status")).to_have_text("5 open · 1 done")
    me.say("show my tasks", "1. ☐ Buy milk")
    me.say("complete buy bread", "Great! I've marked 'buy bread' as complete.")
    expect(me.tasks.locator(".is-done").get_by_text("buy bread")).to_be_visible()
    me.say("complete call", "I found multiple tasks about 'call'. Which one:")
    expect(me.tasks.get_by_role("status")).to_have_text("4 open · 2 done")
    me.say("delete buy milk", "Reply 'yes delete' to confirm.")
    expect(me.tasks.get_by_text("Buy milk")).to_be_visible()
    me.page.get_by_role("button", name="Write “yes delete”").click()
    expect(me.field).to_have_value("yes delete")
    expect(me.tasks.get_by_text("Buy milk")).to_be_visible()
    me.field.press("Enter")
    expect(me.log.locator(".line").last).to_contain_text("I've removed 'Buy milk'")
    expect(me.tasks.get_by_text("Buy milk")).to_have_count(0)
    me.is_well()


def test_two_users_side_by_side_see_nothing_of_each_other(window):
    """(T3) In two browsers, at the same time; a yes of one answers no question of the other."""
    ana, ben = window("ana"), window("ben")
    expect(ana.tasks.get_by_text("Call Grandma")).to_be_visible()
    expect(ben.tasks.get_by_text("Fix the bike")).to_be_visible()
    ana.say("delete buy milk", "Reply 'yes delete'")
    ben.say("yes delete", "nothing waiting for your confirmation")
    ben.say("delete call grandma", "I couldn't find a task about")
    ben.say("add a secret of ben's", "Got it!")
    ana.say("show my tasks", "Buy milk")
    assert "Buy milk" in ana.titles and not any("secret" in one for one in ana.titles)
    for one, foreign in ((ana, ("bike", "library", "ben's")), (ben, ("milk", "Grandma", "Lisbon"))):
        text = one.page.locator("body").inner_text()
        assert [word for word in foreign if word in text and word not in "milk Grandma"] == []
        one.is_well()


def test_two_windows_of_one_user_show_the_same_list(window):
    here, there = window("ana"), window("ana", viewport=PHONE)
    here.say("add water the cactus", "Got it!")
    there.page.get_by_role("button", name=re.compile("^Tasks")).click()
    expect(there.tasks.get_by_text("water the cactus")).to_be_visible()


def test_conversations_are_listed_gone_back_to_and_deleted(window):
    me = window("ana")
    me.say("add buy bread", "Got it!")
    first = me.page.url
    me.page.get_by_role("button", name="New conversation").click()
    expect(me.page.get_by_role("heading", name="What would you like to get done?")).to_be_visible()
    me.page.get_by_role("button", name="Show my tasks").click()
    expect(me.log.locator(".line.there").last).to_contain_text("buy bread")
    assert me.page.url != first
    names = me.page.get_by_role("navigation", name="Conversations")
    names.get_by_role("button", name="add buy bread", exact=True).click()
    expect(me.log.locator(".line").first).to_contain_text("add buy bread")
    assert me.page.url == first
    me.page.reload()  # the tab is still signed in, and where it was
    expect(me.log.locator(".line").first).to_contain_text("add buy bread")
    names.get_by_role("button", name="Delete this conversation: add buy bread").click()
    me.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(names.get_by_role("button", name="add buy bread", exact=True)).to_have_count(0)
    expect(me.tasks.get_by_text("buy bread")).to_be_visible()  # what was done stays done
    me.is_well()


def test_a_token_is_asked_for_and_a_wrong_one_is_said_to_be_wrong(window, served):
    me = window()
    me.page.goto(f"{served.url}/")
    expect(me.page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert me.page.url == f"{served.url}/chat"
    token = me.page.get_by_label("Token")
    token.fill("nonsense")
    token.press("Enter")
    expect(me.page.get_by_role("alert")).to_contain_text("not valid here")
    token.fill(f"{served.url}/chat#token={served.tokens['ben']}")  # people paste the address
    token.press("Enter")
    expect(me.tasks.get_by_text("Fix the bike")).to_be_visible()
    me.page.get_by_role("button", name="Sign out").click()
    expect(me.page.get_by_text("You are signed out.")).to_be_visible()
    assert "bike" not in me.page.locator("body").inner_text()
    me.page.reload()
    expect(me.page.get_by_role("heading", name="Sign in")).to_be_visible()
    me.is_well()


HOSTILE = "<img src=x onerror=document.title='pwned'> <b>bold</b> [x](javascript:alert(1))"


def test_text_is_shown_as_text_whatever_it_says(window):
    me = window("ana")
    me.say(f"add {HOSTILE}", "Got it!")
    expect(me.tasks.locator(".task-title").get_by_text("onerror")).to_be_visible()
    assert me.page.locator(".columns img, .columns b, .columns a").count() == 0
    assert "pwned" not in me.page.title()
    me.is_well()


def test_a_message_that_was_not_answered_can_be_sent_again_and_is_done_once(window, served):
    me = window("ana")
    me.say("add one", "Got it!")
    me.page.route("**/chat", lambda route: (route.fetch(), route.abort()))  # the answer is lost
    me.say("add two")
    expect(me.page.get_by_role("alert")).to_contain_text("was not answered")
    me.page.unroute("**/chat")
    me.page.get_by_role("button", name="Try again").click()
    expect(me.log.locator(".line").last).to_contain_text("Added 'two'")
    expect(me.tasks.get_by_text("two", exact=True)).to_have_count(1)


def holding_the_first(me):
    """The messages that leave the page from now on; the first one until it is let go."""
    sent = []

    def leaving(route):
        sent.append(route)
        if len(sent) > 1:
            route.continue_()

    me.page.route("**/chat", leaving)
    return sent


def test_what_is_written_while_an_answer_is_on_its_way_is_said_next(window):
    me = window("ana")
    held = holding_the_first(me)
    me.say("add one")
    me.say("add two")
    me.say("show my tasks")
    expect(me.field).to_have_value("")
    expect(me.log.locator(".line.user")).to_have_count(3)
    expect(me.log.locator(".line.waiting")).to_have_count(3)
    until(me.page, lambda: held)
    assert len(held) == 1  # the others wait for it
    held[0].continue_()
    answers = me.log.locator(".line.assistant")
    expect(answers.nth(0)).to_contain_text("Added 'one'")
    expect(answers.nth(1)).to_contain_text("Added 'two'")
    expect(answers.nth(2)).to_contain_text("7. ☐ two")
    names = me.page.get_by_role("navigation", name="Conversations")
    expect(names.get_by_role("button", name="add one", exact=True)).to_have_count(1)
    me.is_well()


def test_who_leaves_before_the_answer_finds_it_where_it_was_asked(window):
    me = window("ana")
    me.say("add one", "Got it!")
    first = me.page.url
    held = holding_the_first(me)
    me.say("add two")
    me.page.get_by_role("button", name="New conversation").click()
    me.say("add three")
    names = me.page.get_by_role("navigation", name="Conversations")
    names.get_by_role("button", name="add one", exact=True).click()
    expect(me.log.locator(".line").first).to_contain_text("add one")
    until(me.page, lambda: held)
    held[0].continue_()
    expect(me.log.locator(".line.assistant").last).to_contain_text("Added 'two'")
    assert me.page.url == first
    names.get_by_role("button", name="add three", exact=True).click()
    expect(me.log.locator(".line.assistant")).to_have_count(1)
    expect(me.log.locator(".line.assistant").last).to_contain_text("Added 'three'")
    me.is_well()


def test_the_keyboard_alone_is_enough(window):
    me = window("ana")
    me.field.focus()
    me.page.keyboard.type("add type this")
    me.page.keyboard.press("Shift+Enter")
    me.page.keyboard.type("in two lines")
    assert me.field.input_value() == "add type this\nin two lines"
    me.page.keyboard.press("Enter")
    expect(me.log.locator(".line.assistant").last).to_contain_text("Got it!")
    expect(me.field).to_have_value("")
    expect(me.field).to_be_focused()


def test_an_older_list_that_comes_after_a_newer_one_is_not_shown(window):
    """The conversations are asked for after every answer; on a bad line one overtakes another."""
    me = window("ana")
    held = []

    def leaving(route):
        if held:
            route.continue_()
        else:
            held.append((route, route.fetch()))  # as it was then; it arrives later

    me.page.route("**/conversations?*", leaving)
    me.say("add one", "Got it!")
    until(me.page, lambda: held)
    me.page.get_by_role("button", name="New conversation").click()
    me.say("add two", "Got it!")
    names = me.page.get_by_role("navigation", name="Conversations")
    expect(names.get_by_role("button", name="add two", exact=True)).to_be_visible()
    with me.page.expect_event("requestfinished", lambda one: "/conversations?" in one.url):
        held[0][0].fulfill(response=held[0][1])
    me.page.evaluate("fetch('/api/chat/health').then((answer) => answer.text())")  # it is read now
    assert names.get_by_role("button", name="add two", exact=True).count() == 1
    me.is_well()


def test_a_window_that_somebody_comes_back_to_shows_what_was_said_in_another(window):
    """The question on the screen is the one that a yes answers."""
    one, two = window("ana"), window("ana")
    one.say("delete buy milk", "Do you really want to delete 'Buy milk'?")
    two.page.goto(one.page.url)
    expect(two.log).to_contain_text("'Buy milk'")
    two.say("delete call grandma", "Do you really want to delete 'Call Grandma'?")
    one.page.evaluate("dispatchEvent(new Event('focus'))")
    expect(one.log.locator(".line").last).to_contain_text("'Call Grandma'")
    one.say("no", "Okay, nothing was changed.")
    expect(one.log.locator(".line")).to_have_count(6)
    one.is_well()
