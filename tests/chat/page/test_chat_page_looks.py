"""How the chat's page looks and reads: light, dark, on a phone, from right to left (axe-core)."""

import re

import pytest
from playwright.sync_api import expect

from web.rig_page import PHONE


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_checker_of_accessibility_finds_nothing_serious(window, served, scheme):
    me = window(color_scheme=scheme, bypass_csp=True)
    me.page.goto(f"{served.url}/chat")
    expect(me.page.get_by_role("heading", name="Sign in")).to_be_visible()
    found = {"sign in": me.axe()}
    me.sign_in("ana")
    found["start"] = me.axe()
    me.say("show my tasks", "Buy milk")
    me.say("delete buy milk", "Reply 'yes delete'")
    found["talk"] = me.axe()
    me.page.get_by_role("button", name=re.compile("^Delete this conversation")).first.click()
    expect(me.page.get_by_role("dialog")).to_be_visible()
    found["dialog"] = me.axe()
    assert {name: bad for name, bad in found.items() if bad} == {}


def test_on_a_phone_the_list_is_a_tab_and_nothing_sticks_out(window):
    me = window("ana", viewport=PHONE, is_mobile=True, has_touch=True, bypass_csp=True)
    me.say("show my tasks", "Buy milk")
    expect(me.tasks).not_to_be_visible()
    assert me.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert me.axe() == []
    me.page.get_by_role("button", name=re.compile("^Tasks")).tap()
    expect(me.tasks.get_by_text("Buy milk")).to_be_visible()
    expect(me.field).not_to_be_visible()
    assert me.axe() == []
    me.page.get_by_role("button", name="Conversations").tap()
    names = me.page.get_by_role("navigation", name="Conversations")
    assert me.axe() == []
    names.get_by_role("button", name="show my tasks", exact=True).tap()
    expect(me.log.locator(".line").first).to_be_visible()
    me.is_well()


def test_arabic_is_read_from_right_to_left(window):
    me = window("ben", locale="ar", bypass_csp=True)
    assert me.page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == [
        "ar",
        "rtl",
    ]
    list_at, chat_at = (one.bounding_box()["x"] for one in (me.tasks, me.field))
    assert list_at < chat_at
    me.say("add خبز", "خبز")
    assert me.axe() == []
    me.page.get_by_role("combobox", name="اللغة").select_option("en")
    expect(me.page.get_by_role("heading", name="Tasks", level=2)).to_be_visible()
    assert me.page.evaluate("document.documentElement.dir") == "ltr"
    me.is_well()


def test_titles_from_left_to_right_stand_at_the_right_in_arabic(window):
    me = window("ana", locale="ar")
    me.say("show my tasks", "Buy milk")
    reply = me.log.locator(".line.assistant .text")
    expect(reply).to_have_css("direction", "rtl")
    me.say("add x", "x")
    edges = {
        round(box["x"] + box["width"])
        for one in ("Book the train to Lisbon", "Window seat")
        for box in [me.tasks.get_by_text(one).bounding_box()]
    }
    assert len(edges) == 1, edges


def test_a_task_that_was_completed_just_now_is_struck_through(window):
    """T8: without a reload."""
    ana = window("ana")
    ana.say("complete call the dentist", "as complete")
    title = ana.tasks.locator(".is-done .task-title", has_text="Call the dentist")
    expect(title).to_have_css("text-decoration-line", "line-through")


@pytest.mark.parametrize(
    ("locale", "counts", "over"),
    [
        ("en", "4 open · 1 done", ["1 character too many", "2 characters too many"]),
        ("es", "4 pendientes · 1 hecha", ["1 carácter de más", "2 caracteres de más"]),
        ("ar", "المفتوحة: 4 · المنجزة: 1", ["حرف واحد زائد", "حرفان زائدان"]),
    ],
)
def test_numbers_agree_with_their_words(window, locale, counts, over):
    me = window("ana", locale=locale)
    expect(me.tasks.get_by_role("status")).to_have_text(counts)
    hint = me.page.locator("#say-hint")
    for more, said in enumerate(over, 1):
        me.field.fill("x" * (10_000 + more))
        expect(hint).to_have_text(said)


def test_who_reads_the_end_still_reads_it_when_the_window_changes(window):
    """A phone that is turned, or whose keyboard opens; who has scrolled up stays there."""
    me = window("ana")
    for number in range(8):
        me.say(f"add water the plants on floor {number}", "Got it!")
    last = me.log.locator(".line").last
    for size in ({"width": 900, "height": 500}, {"width": 390, "height": 420}, PHONE):
        me.page.set_viewport_size(size)
        expect(last).to_be_in_viewport(ratio=1)
    for step in range(10):  # a window that is dragged: most sizes do not last until they are drawn
        me.page.set_viewport_size({"width": 1200 - 80 * step, "height": 800 - 40 * step})
    expect(last).to_be_in_viewport(ratio=1)
    me.page.set_viewport_size(PHONE)
    region = me.page.get_by_role("region", name="Chat")
    region.evaluate(
        "box => new Promise(next => {"
        " box.scrollTop = 0; requestAnimationFrame(() => requestAnimationFrame(next)) })"
    )
    me.page.set_viewport_size({"width": 390, "height": 420})
    expect(me.log.locator(".line").first).to_be_in_viewport()


def test_earlier_messages_come_above_what_is_read(window):
    me = window("ana")
    for number in range(30):
        me.say(f"add water the plants on floor {number}", "Got it!")
    me.page.reload()
    first = me.log.locator(".line").first
    expect(first).to_contain_text("floor 5")
    before = me.log.get_by_text("add water the plants on floor 5", exact=True)
    me.page.get_by_role("button", name="Show earlier messages").click()
    expect(first).to_contain_text("floor 0")
    expect(before).to_be_in_viewport()
    expect(first).not_to_be_in_viewport()
