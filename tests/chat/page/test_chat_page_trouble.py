"""What the chat's page says when something goes wrong: one message, and one thing to do."""

import json
import re

import pytest
from playwright.sync_api import expect

ANSWERS = "**/api/ana/chat"


def refusing(me, status, code, detail="", hint="", **headers):
    """Every message is refused so, until it is let through again."""
    body = json.dumps({"code": code, "detail": detail, "hint": hint, "status": status})
    me.page.route(
        ANSWERS,
        lambda route: route.fulfill(
            status=status, body=body, content_type="application/problem+json", headers=headers
        ),
    )


def trouble(me):
    """What the note says, and its buttons."""
    note = me.page.get_by_role("alert")
    expect(note).to_be_visible()
    return note.locator("p").inner_text(), note.get_by_role("button").all_inner_texts()


@pytest.mark.parametrize(
    ("refusal", "says", "buttons"),
    [
        (
            (503, "unavailable", "I'm having a bit of trouble right now. Please try again.",
             "Nothing was half done. Send the message again with the same Idempotency-Key."),
            "This message was not answered.", ["Try again"],
        ),
        ((500, "internal", "Something broke.", "Please try again in a moment."),
         "This message was not answered.", ["Try again"]),
        ((429, "rate_limited", "Please wait a moment and send it again.", "", "20"),
         "You have sent many messages in a short time.", ["Try again"]),
        ((429, "rate_limited", "Please come back tomorrow.", "", "40000"),
         "You have used up today's allowance. You can write again tomorrow.", []),
        ((404, "unknown_conversation", "There is no such conversation.", "Leave it out."),
         "This conversation was deleted.", ["New conversation"]),
        ((400, "message_refused", "Could you say it in fewer words?", ""),
         "Could you say it in fewer words?", ["Edit it"]),
    ],
)  # fmt: skip
def test_a_message_that_is_refused_says_one_thing_and_offers_one(window, refusal, says, buttons):
    me = window("ana")
    me.say("add one", "Got it!")
    status, code, detail, hint, *wait = refusal
    refusing(me, status, code, detail, hint, **({"Retry-After": wait[0]} if wait else {}))
    me.say("add two")
    assert trouble(me) == (says, buttons)
    me.page.unroute(ANSWERS)
    if buttons == ["Try again"]:
        me.page.get_by_role("button", name="Try again").click()
        expect(me.log.locator(".line").last).to_contain_text("Added 'two'")
    elif buttons:
        me.page.get_by_role("button", name=buttons[0]).last.click()
        expect(me.field).to_have_value("add two")
        expect(me.field).to_be_focused()


def test_an_error_inside_of_an_answer_says_one_thing_as_well(window):
    me = window("ana")
    said = {"status": 503, "code": "unavailable", "detail": "Please try again.", "hint": "Key."}
    body = f"event: accepted\ndata: {{}}\n\nevent: error\ndata: {json.dumps(said)}\n\n"
    me.page.route(ANSWERS, lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    me.say("add one")
    assert trouble(me) == ("This message was not answered.", ["Try again"])


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("talk", ["a new one", "one that has begun"])
def test_a_page_that_is_loaded_anew_before_the_answer_shows_it(window, arrived, talk):
    """Whether or not the server had the message yet; it is done once."""
    me = window("ana")
    if talk != "a new one":
        me.say("add one", "Got it!")
    held = []

    def holding(route):
        if arrived:
            route.fetch()
        held.append(route)

    me.page.route(ANSWERS, holding)
    with me.page.expect_request(ANSWERS):
        me.say("add two")
    me.say("add three")
    expect(me.log.locator(".line.user").last).to_contain_text("add three")
    me.page.unroute(ANSWERS)
    me.page.reload()
    answers = me.log.locator(".line.assistant.there")
    expect(answers.last).to_contain_text("Added 'three'")
    expect(answers.nth(-2)).to_contain_text("Added 'two'")
    expect(me.log.locator(".line.user")).to_have_count(2 if talk == "a new one" else 3)
    for title in ("two", "three"):
        expect(me.tasks.get_by_text(title, exact=True)).to_have_count(1)
    names = me.page.get_by_role("navigation", name="Conversations")
    expect(names.locator(".row")).to_have_count(1)
    me.page.reload()
    expect(me.log.locator(".line.assistant")).to_have_count(2 if talk == "a new one" else 3)


def test_an_answer_that_another_window_waits_for_is_shown_when_it_is_there(window):
    here, there = window("ana"), window("ana")
    here.say("add one", "Got it!")
    held = []

    def hiding(route):  # as it is while the answer is on its way
        found = route.fetch().json()
        if not held:
            found["messages"] = found["messages"][:-1]
        route.fulfill(json=found)

    there.page.route(re.compile(r"/conversations/[\w-]+\?"), hiding)
    there.page.goto(here.page.url)
    expect(there.log.locator(".line.user")).to_have_count(1)
    expect(there.log.locator(".line.assistant.waiting")).to_have_count(1)
    held.append("let go")
    expect(there.log.locator(".line.assistant.there")).to_contain_text("Added 'one'")


def test_who_signs_in_while_the_server_is_away_is_let_in_when_it_is_back(window, served):
    me = window()
    me.page.route("**/api/chat/me", lambda route: route.abort())
    me.page.goto(f"{served.url}/chat#token={served.tokens['ana']}")
    expect(me.page.get_by_role("alert")).to_contain_text("Can't reach the server. Trying again…")
    me.page.unroute("**/api/chat/me")
    expect(me.tasks.get_by_text("Buy milk")).to_be_visible()


def test_a_conversation_that_cannot_be_loaded_says_so(window):
    me = window("ana")
    me.say("add one", "Got it!")
    pages = re.compile(r"/conversations/[\w-]+\?")
    me.page.route(pages, lambda route: route.abort())
    me.page.reload()
    assert trouble(me) == ("The messages could not be loaded.", ["Try again"])
    me.page.unroute(pages)
    me.page.get_by_role("button", name="Try again").click()
    expect(me.log.locator(".line")).to_have_count(2)


def test_what_was_written_when_the_sign_in_expired_is_there_afterwards(window, served):
    me = window("ana")
    refusing(me, 401, "no_token", "The token has expired.")
    me.say("add a long thought")
    expect(me.page.get_by_text("Your sign-in has expired.")).to_be_visible()
    me.page.unroute(ANSWERS)
    me.page.get_by_label("Token").fill(served.tokens["ana"])
    me.page.get_by_label("Token").press("Enter")
    expect(me.field).to_have_value("add a long thought")
    assert me.tasks.get_by_text("long thought").count() == 0  # it is for the person to send it


@pytest.mark.parametrize("talk", ["a new one", "one that has begun"])
def test_a_message_that_failed_and_a_draft_are_there_after_a_reload(window, talk):
    me = window("ana")
    if talk != "a new one":
        me.say("add one", "Got it!")
    refusing(me, 429, "rate_limited", "Please wait a moment.", "", **{"Retry-After": "20"})
    me.say("add two")
    assert trouble(me)[1] == ["Try again"]
    me.field.fill("half a thought")
    me.page.reload()
    expect(me.field).to_have_value("half a thought")
    expect(me.log.locator(".line.user").last).to_contain_text("add two")
    assert trouble(me) == ("You have sent many messages in a short time.", ["Try again"])
    me.page.unroute(ANSWERS)
    me.page.get_by_role("button", name="Try again").click()
    expect(me.log.locator(".line").last).to_contain_text("Added 'two'")
    me.page.reload()
    expect(me.log.locator(".line").last).to_contain_text("Added 'two'")
    expect(me.page.get_by_role("alert")).to_have_count(0)
