"""What the page says of sessions is true: costs, models, turns, what was searched; and tables."""

import re

import pytest
from playwright.sync_api import expect

from web import long_log
from web.rig_page import PHONE, Served
from web.stories import EDIT, FILES, LAST, MEND, PROMPT, READ, say

TABLE = """\
| month | opening balance | interest rate | payment | principal | interest | closing balance |
|---|---:|---:|---:|---:|---:|---:|
| January | 1,000,000.00 | 4.125% | 6,067.30 | 2,629.80 | 3,437.50 | 997,370.20 |
| internationalisation | 997,370.20 | 4.125% | 6,067.30 | 2,638.84 | 3,428.46 | 994,731.36 |
"""
ONE_LINE = """cells => cells.filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return cell.textContent.trim().split(/\\s+/).length === 1 && range.getClientRects().length > 1;
}).map((cell) => cell.textContent)"""  # words that are broken over several lines


@pytest.mark.parametrize("viewport", [{"width": 1440, "height": 900}, PHONE])
def test_a_wide_table_scrolls_and_breaks_no_word_and_no_number(serve, window, viewport):
    me = window(serve([say(TABLE)]), viewport=viewport, bypass_csp=True)
    me.begin("a table, please")
    me.has_ended()
    assert me.page.locator(".md td, .md th").evaluate_all(ONE_LINE) == []
    wide = me.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
    assert me.axe() == []


def test_what_a_model_is_called_is_the_same_while_it_speaks_and_afterwards(serve, window):
    served = serve([say("It speaks for long.", pause=600, chunk=10), say("Over.")])
    me = window(served)
    me.begin("speak")
    name = me.page.locator(".reply .who strong").first
    expect(name).to_have_text("scripted")
    me.page.get_by_role("button", name="Stop").click()
    me.has_ended()
    expect(name).to_have_text("scripted")
    me.send("again")
    me.has_ended(2)
    expect(me.page.locator(".reply .who strong")).to_have_text(["scripted", "scripted"])


def test_money_is_written_in_one_way_and_an_unknown_price_is_said(serve, window, tmp_path):
    served = serve(MEND, FILES, "--mode", "edits")
    me = window(served)
    me.begin(PROMPT)
    me.has_ended()
    places = (".meter-cost", ".session-more", ".turns", ".account-line")
    for place in places:
        expect(me.page.locator(place).first).to_contain_text("$0.011")
    served.stop()
    served.say([say("Hi.")], price=None)
    served.start()
    me.sign_in()
    me.begin("what does it cost?")
    me.has_ended()
    for place in places:
        expect(me.page.locator(place).first).to_contain_text("cost unknown")


def test_a_turn_that_waits_for_a_person_is_not_said_to_run(serve, window):
    me = window(serve([READ, say("", EDIT), say(LAST)], FILES))
    me.begin(PROMPT)
    expect(me.question("edit")).to_be_visible()
    expect(me.page.locator(".turns")).to_contain_text("needs approval")
    expect(me.page.locator(".turns")).not_to_contain_text("running")


def test_a_long_session_says_how_many_turns_it_has_and_what_is_not_loaded(tmp_path, window):
    served = Served(tmp_path, [say("One more.")])
    turns = long_log.write(tmp_path / "state", served.workspace, 10_000)
    served.start()
    try:
        me = window(served, viewport={"width": 1440, "height": 900})
        me.page.goto(f"{served.url}/#/s/{long_log.SESSION}")
        expect(me.feed).to_contain_text(f"Module {turns} is sound.")
        details = me.page.get_by_role("complementary", name="Details of the session")
        expect(details.get_by_role("heading", name="Turns")).to_have_text(f"Turns {turns}")
        before = details.locator(".turns li").count()
        details.get_by_role("button", name="Load earlier turns").click()
        expect(details.locator(".turns li").nth(before)).to_be_visible()
        me.page.keyboard.press("Alt+t")
        slider = me.page.get_by_role("slider", name="Timeline")
        expect(slider).to_be_focused()
        me.page.keyboard.press("PageDown")
        expect(slider).to_have_attribute("aria-valuetext", re.compile(f"^turn {turns}, prompt: "))
    finally:
        served.stop()


def test_a_note_never_covers_the_composer(serve, window):
    me = window(serve([say("Hi.")]))
    me.begin("hello")
    me.has_ended()
    me.page.keyboard.press("Alt+u")
    note = me.page.locator(".toast")
    expect(note).to_be_visible()
    for viewport in ({"width": 1440, "height": 900}, {"width": 800, "height": 700}, PHONE):
        me.page.set_viewport_size(viewport)
        here, there = note.bounding_box(), me.page.locator(".composer").bounding_box()
        apart = here["x"] + here["width"] <= there["x"] or here["y"] + here["height"] <= there["y"]
        assert apart, (viewport, here, there)


def test_the_doctor_names_the_model_that_the_server_was_started_with(serve, window):
    served = serve([say("Hi.")])
    token = served.token("ann", "admin")
    me = window(served)
    headers = {"Authorization": f"Bearer {token}"}
    lines = me.context.request.get(f"{served.url}/api/doctor", headers=headers).json()["lines"]
    assert [one for one in lines if "default model" in one and "scripted" in one]


COVERED = """menu => {
  const button = menu.getBoundingClientRect();
  const lies = (line) => line.right > button.left && line.left < button.right
    && line.bottom > button.top && line.top < button.bottom;
  const text = menu.closest('.reply').querySelector('.md');
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    range.selectNodeContents(node);
    if ([...range.getClientRects()].some(lies)) return true;
  }
  return false;
}"""  # does the menu lie over a line of the text?


def test_on_a_phone_the_menu_of_a_reply_lies_over_no_word(serve, window):
    words = "a rather long reply, whose words go on and on to the right edge, " * 4
    served = serve([say("First.", ("read", {"path": "basket.py"})), say(words)], FILES)
    me = window(served, viewport=PHONE, has_touch=True, is_mobile=True)
    me.begin("go")
    me.has_ended()
    menus = me.page.get_by_role("button", name="What to do with this reply")
    expect(menus).to_have_count(2)
    assert [menu.evaluate(COVERED) for menu in menus.all()] == [False, False]


def test_a_command_line_is_not_counted_among_the_commands_that_it_consists_of(serve, window):
    line = "make deploy && rm -rf build | tee log.txt"
    me = window(
        serve(
            [
                say("", ("shell", {"command": line})),
                say("", ("shell", {"command": "make deploy # once"})),
            ]
        )
    )
    me.begin("deploy")
    known = me.question("this command").locator(".known")
    expect(known).to_contain_text("3 commands")
    pieces = ["make deploy", "rm -rf build", "tee log.txt"]
    expect(known.locator("div", has_text="commands").locator("code")).to_have_text(pieces)
    me.question("this command").get_by_role("button", name="Deny").first.click()
    expect(known).to_contain_text("Understood as")
    expect(known.locator("div", has_text="Understood as").locator("code")).to_have_text(
        ["make deploy"]
    )
