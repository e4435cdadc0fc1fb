"""How the page looks and reads: light and dark, on a phone, and to a screen reader (axe-core)."""

import os

import pytest
from playwright.sync_api import expect

from web.rig_page import PHONE
from web.stories import EDIT, FILES, LAST, MEND, PLAN, PROMPT, QUESTION, READ, RICH, say

SPOKEN = "Many words come one by one, and only when all of them are there are they read out loud."


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing_serious(serve, window, scheme):
    served = serve([RICH, *MEND[1:]], FILES)
    looks = {"color_scheme": scheme, "bypass_csp": True}
    me = window(served, signed_in=False, **looks)
    me.page.goto(served.url)
    expect(me.page.get_by_role("heading", name="Sign in")).to_be_visible()
    found = {"sign in": me.axe()}
    me.sign_in()
    found["start"] = me.axe()
    me.begin(PROMPT)
    expect(me.question("edit")).to_be_visible()
    found["a question"] = me.axe()
    me.page.keyboard.press("Alt+a")
    expect(me.page.get_by_role("dialog", name="Approvals")).to_be_visible()
    found["the tray"] = me.axe()
    me.page.keyboard.press("Escape")
    me.question("edit").get_by_role("button", name="Always allow").click()
    expect(me.feed).to_contain_text("Rule for this folder, from now on")
    found["a rule"] = me.axe()
    me.page.get_by_role("button", name="Allow and save the rule").click()
    expect(me.feed).to_contain_text(LAST)
    folds = me.feed.locator("button[aria-expanded=false]:not([aria-haspopup])")
    folds.evaluate_all("all => all.forEach((one) => one.click())")
    found["a result"] = me.axe()
    me.feed.get_by_role("button", name="Undo…").click()
    expect(me.page.get_by_role("dialog")).to_contain_text("Undo turn 1?")
    found["undo"] = me.axe()
    assert {screen: bad for screen, bad in found.items() if bad} == {}


def test_plans_and_questions_of_the_model_read_well(serve, window):
    served = serve([PLAN, QUESTION, say("I take SQLite.")], FILES, "--mode", "plan")
    me = window(served, bypass_csp=True)
    me.begin("plan it")
    expect(
        me.question("Go ahead with this plan?").get_by_role("heading", name="Plan")
    ).to_be_visible()
    found = {"a plan": me.axe()}
    plan = me.question("Go ahead with this plan?")
    plan.get_by_role("button", name="Yes, with changes").click()
    me.page.get_by_label("What to change").fill("and the docs")
    me.page.get_by_role("button", name="Yes, with these changes").click()
    expect(me.feed).to_contain_text("Agreed by you")
    expect(me.question("Which database")).to_be_visible()
    found["a question"] = me.axe()
    me.question("Which database").get_by_role("button", name="SQLite, simpler").click()
    expect(me.feed).to_contain_text("Answered by you")
    expect(me.feed).to_contain_text("I take SQLite.")
    assert {screen: bad for screen, bad in found.items() if bad} == {}


def test_on_a_phone_everything_fits_and_can_be_answered(serve, window):
    served = serve([READ, say("", EDIT), say(LAST)], FILES)
    me = window(served, viewport=PHONE, has_touch=True, is_mobile=True, bypass_csp=True)
    me.begin(PROMPT)
    expect(me.question("edit")).to_be_visible()
    wide = me.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
    expect(me.page.locator(".rows-two")).to_have_count(0)
    assert me.axe() == []
    me.question("edit").get_by_role("button", name="Allow once").tap()
    expect(me.feed).to_contain_text(LAST)
    me.page.get_by_role("button", name="Sessions").tap()
    expect(me.page.get_by_role("searchbox", name="Search all sessions")).to_be_visible()
    assert me.axe() == []
    me.is_well()


def test_two_columns_are_remembered(serve, window):
    served = serve([READ, say("", EDIT), say(LAST)], FILES)
    me = window(served, viewport={"width": 1500, "height": 900})
    me.begin(PROMPT)
    me.question("edit").get_by_role("button", name="Side by side").click()
    expect(me.question("edit").locator(".rows-two")).to_be_visible()
    me.page.reload()
    expect(me.question("edit").locator(".rows-two")).to_be_visible()


def test_a_reader_is_told_what_is_finished_and_not_every_word(serve, window):
    served = serve([say("", ("shell", {"command": "cat gate"})), say(SPOKEN, pause=0.06)], {})
    os.mkfifo(gate := served.workspace / "gate")
    me = window(served)
    me.begin("speak")
    expect(me.page.locator(".call-status")).to_have_text("running")
    status = me.page.locator(".conversation > [role=status]")
    heard = me.page.evaluate_handle(
        """() => { const heard = []; const box = document.querySelector('.conversation');
        new MutationObserver(() => {
          const said = box.querySelector(':scope > [role=status]')?.textContent;
          if (said && heard.at(-1) !== said) heard.push(said);
        }).observe(box, {subtree: true, childList: true, characterData: true}); return heard; }"""
    )
    gate.write_text("")  # only now it speaks: somebody listens from the first word on
    expect(status).to_have_text(SPOKEN)
    assert heard.json_value() == [SPOKEN]
    expect(me.page.get_by_role("article")).to_have_count(4)


def test_what_is_written_from_right_to_left_begins_at_the_right(serve, window):
    arabic = "مرحبا بك في `basket.py` اليوم"
    reply = f"{arabic}\n\n- عنصر أول\n- second\n\n> اقتباس\n\n```\nمرحبا = 1\n```\n\nplain words"
    me = window(serve([say(reply)]))
    me.begin(arabic)
    me.has_ended()
    directions = "all => all.map((one) => getComputedStyle(one).direction)"
    for where, expected in {
        ".prompt-text": ["rtl"],
        ".reply .md p": ["rtl", "rtl", "ltr"],
        ".reply .md ul": ["rtl"],
        ".reply .md pre": ["ltr"],
    }.items():
        assert me.page.locator(where).evaluate_all(directions) == expected, where
    item = me.page.locator(".reply .md li").first.bounding_box()
    assert item["x"] + item["width"] < me.page.locator(".reply .md").bounding_box()["x"] + (
        me.page.locator(".reply .md").bounding_box()["width"] - 8
    ), "there is room for the bullet at the right"
    me.composer.fill("أضف")
    assert me.composer.evaluate("one => getComputedStyle(one).direction") == "rtl"
    me.composer.fill("")
    assert me.composer.evaluate("one => getComputedStyle(one).direction") == "ltr"
    me.is_well()


def test_the_folder_has_its_name_before_a_session_begins_also_on_a_phone(serve, window):
    me = window(serve([]), viewport=PHONE)
    expect(me.page.locator(".pickers .workspace")).to_have_text("shop")
    expect(me.page.locator(".pickers .workspace")).to_be_visible()
