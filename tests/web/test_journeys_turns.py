"""Journeys inside a turn and back out of it: live output, stop, rewind, copy, side by side."""

import json
import os
import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from web.rig_page import until
from web.stories import FILES, LAST, MEND, PROMPT, say

AT_REST = """one => new Promise((done) => {
  let [before, frames] = [-1, 0];
  const look = () => {
    frames = one.scrollTop === before ? frames + 1 : 0;
    before = one.scrollTop;
    if (frames < 10) requestAnimationFrame(look);
    else done(before);
  };
  look();
})"""  # a wheel goes on turning for some frames


def test_a_command_is_heard_while_it_runs_and_can_be_stopped(serve, window):
    served = serve([say("", ("shell", {"command": "echo heard; cat gate"})), say("Over.")], {})
    os.mkfifo(served.workspace / "gate")  # nobody opens it: the command waits
    me = window(served)
    me.begin("listen")
    live = me.page.locator(".output-live")
    expect(live).to_contain_text("heard")
    expect(me.page.locator(".call-status")).to_have_text("running")
    me.page.get_by_role("button", name="Stop").click()
    expect(me.page.locator(".account-line")).to_contain_text("Stopped")
    expect(me.composer, "the button that was pressed is gone").to_be_focused()
    expect(live).to_have_count(0)
    expect(me.page.locator(".call-status")).to_contain_text("stopped")
    me.send("again")
    expect(me.feed).to_contain_text("Over.")
    me.is_well()


def test_an_answer_that_is_not_complete_says_so(serve, window):
    """It was asked to go on once, which is nobody's prompt."""
    cut = {"text": "and so on", "stop_reason": "max_tokens"}
    me = window(serve([cut, cut]))
    me.begin("tell")
    expect(me.page.locator(".account-line")).to_contain_text("Cut off")
    expect(me.feed).to_contain_text("The answer is not complete")
    expect(me.feed).not_to_contain_text("Go on exactly")
    me.is_well()


@pytest.fixture
def vendor(tmp_path, monkeypatch):
    """Start a vendor's server that gives these replies; a server then asks it."""
    started = []

    def start(replies):
        script = tmp_path / "vendor.json"
        script.write_text(json.dumps({"replies": replies}))
        line = [sys.executable, "-m", "bridle.testing.serve", "anthropic", "--script", script]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        started.append(process)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", process.stdout.readline().strip())
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-a-test")

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=20)


def test_a_half_reply_that_broke_off_is_marked_as_discarded(serve, window, vendor):
    half = {"text": "Half a sen", "thinking": "Hm.", "calls": [{"name": "ls"}], "cut": True}
    vendor([half, "A whole one."])
    me = window(serve([], {}, "--model", "anthropic/claude-x"), bypass_csp=True)
    me.begin("tell")
    me.has_ended()
    parts = me.page.locator(".entry-box.discarded")
    expect(parts).to_have_count(3)
    for kind in ("thinking", "text", "call"):
        part = me.feed.get_by_role("article").filter(
            has=parts.and_(me.page.locator(f".entry-{kind}"))
        )
        expect(part).to_contain_text("discarded")
        expect(part).to_have_accessible_name(re.compile("discarded"))
    expect(me.feed).to_contain_text("The reply above broke off and is discarded.")
    whole = me.feed.get_by_role("article").filter(has_text="A whole one.")
    expect(whole).not_to_contain_text("discarded")
    expect(whole.locator(".who strong"), "it begins anew").to_be_visible()
    assert me.axe() == []
    me.is_well()


def test_a_prompt_that_waits_is_shown_and_can_be_taken_back(serve, window):
    served = serve([say("", ("shell", {"command": "cat gate"})), say("Over.")], {})
    os.mkfifo(served.workspace / "gate")
    me = window(served)
    me.begin("listen")
    expect(me.page.locator(".call-status")).to_have_text("running")
    me.send("and then this")
    me.send("and never that")
    waiting = me.page.locator(".queued p")
    expect(waiting).to_have_count(2)
    waiting.filter(has_text="never").get_by_role("button", name="Take back").click()
    expect(waiting).to_have_count(1)
    me.page.get_by_role("button", name="Stop").click()
    expect(me.feed).to_contain_text("Over.")
    expect(me.feed).not_to_contain_text("never that")
    me.is_well()


def test_what_is_written_while_a_prompt_is_on_its_way_is_kept(serve, window):
    """The field is free at once; prompts arrive in their order, and one that cannot comes back."""
    served = serve([say("First."), say("Second."), say("Third.")])
    me = window(served)
    me.begin("one")
    expect(me.feed).to_contain_text("First.")
    held = []
    me.page.route("**/chat", lambda route: held.append(route))
    me.send("two")
    expect(me.page.locator(".hint")).to_contain_text("Sending: two")
    me.send("three")
    me.composer.fill("half a thought")
    until(me.page, lambda: held)
    assert len(held) == 1
    held.pop().continue_()
    expect(me.page.locator(".hint")).to_contain_text("Sending: three")
    until(me.page, lambda: held)
    held.pop().continue_()
    me.page.unroute("**/chat")
    expect(me.feed).to_contain_text("Third.")
    expect(me.composer).to_have_value("half a thought")
    me.page.route("**/chat", lambda route: route.fulfill(status=400, json={"code": "refused"}))
    me.send("four")
    expect(me.composer).to_have_value("four")
    assert me.feed.inner_text().index("two") < me.feed.inner_text().index("three")


def test_a_rewind_folds_what_it_takes_back_and_keeps_it_to_look_at(serve, window):
    served = serve([say("First answer."), say("Second answer."), say("Third answer.")])
    me = window(served, bypass_csp=True)
    me.begin("one")
    expect(me.feed).to_contain_text("First answer.")
    me.send("two")
    expect(me.feed).to_contain_text("Second answer.")
    me.has_ended(2)
    me.page.get_by_role("button", name="What to do with this reply").first.click()
    me.page.get_by_role("menuitem", name="Rewind to here").click()
    me.page.get_by_role("dialog").get_by_role("button", name="Rewind").click()
    expect(me.feed).to_contain_text("2 entries taken back by a rewind")
    expect(me.feed).not_to_contain_text("Second answer.")
    me.page.get_by_role("button", name="Show", exact=True).click()
    expect(me.feed).to_contain_text("Second answer.")
    assert me.axe() == []
    me.send("three")
    expect(me.feed).to_contain_text("Third answer.")
    me.is_well()


def test_code_is_coloured_and_copied_as_it_was_written(serve, window):
    code = "def total(prices):\n    return sum(prices)  # <b>all</b>"
    served = serve([say(f"Here:\n\n```python\n{code}\n```\n")])
    me = window(served, permissions=["clipboard-read", "clipboard-write"])
    me.begin("code, please")
    expect(me.page.locator(".md-code .hljs-keyword").first).to_have_text("def")
    me.has_ended()
    me.page.get_by_role("button", name="Copy the python block").click()
    expect(me.page.locator(".md-copy")).to_have_text("Copied")
    assert me.page.evaluate("navigator.clipboard.readText()") == code
    assert me.page.locator(".md-code b").count() == 0


def test_who_scrolls_up_stays_there_while_it_streams_and_follows_again_when_they_want(
    serve, window
):
    lines = "\n\n".join(f"Line {number} of many." for number in range(150))
    wait = ("shell", {"command": "cat gate"})
    served = serve([say(lines, wait, pause=0.03, chunk=20), say("Over.")], {})
    os.mkfifo(gate := served.workspace / "gate")  # the turn goes on until somebody opens it
    me = window(served)
    me.begin("say a lot")
    feed = me.page.locator(".feed")
    expect(me.feed).to_contain_text("Line 40 of many.")
    feed.hover()
    me.page.mouse.wheel(0, -500)
    follow = me.page.get_by_role("button", name="Follow")
    expect(follow).to_be_visible()
    here = feed.evaluate(AT_REST)
    expect(me.feed).to_contain_text("Line 80 of many.")
    assert feed.evaluate("one => one.scrollTop") == here
    follow.click()
    expect(me.feed).to_contain_text("Line 149 of many.")
    gate.write_text("")
    expect(me.page.locator(".account-line")).to_be_in_viewport()
    expect(me.page.locator(".newest")).to_have_count(0)


def test_work_that_is_handed_on_is_a_card_that_leads_to_its_session(serve, window):
    task = ("task", {"prompt": "Look for other baskets", "description": "Look around"})
    served = serve([say("", task), say("I am the child: there are none."), say("None, it says.")])
    me = window(served)
    parent = me.begin("have somebody look")
    expect(me.feed).to_contain_text("None, it says.")
    me.feed.get_by_role("button", name="Child session").click()
    expect(me.page).not_to_have_url(re.compile(parent))
    expect(me.feed).to_contain_text("I am the child: there are none.")
    me.page.go_back()
    expect(me.feed).to_contain_text("None, it says.")
    me.is_well()


def test_a_question_of_the_past_is_shown_and_cannot_be_answered_there(serve, window):
    served = serve(MEND, FILES)
    me = window(served)
    me.begin(PROMPT)
    me.question("edit").get_by_role("button", name="Allow once").click()
    expect(me.feed).to_contain_text(LAST)
    me.has_ended()
    me.page.get_by_role("button", name="Timeline").click()
    slider = me.page.get_by_role("slider", name="Timeline")
    while "approval" not in slider.get_attribute("aria-valuetext"):
        before = slider.get_attribute("aria-valuetext")
        slider.press("ArrowLeft")
        expect(slider).not_to_have_attribute("aria-valuetext", before)
    expect(me.feed).to_contain_text("Go back to now to answer")
    expect(me.question().locator("td.row-new mark")).to_have_text("100")
    expect(me.question().get_by_role("button", name="Allow once")).to_have_count(0)
    me.is_well()


FIRST_MOMENT = """new MutationObserver((_, seen) => {
  if (!document.querySelector('.conversation')) return;
  seen.disconnect();
  const key = {key: 'f', ctrlKey: true, bubbles: true, cancelable: true};
  document.body.dispatchEvent(new KeyboardEvent('keydown', key));
}).observe(document, {subtree: true, childList: true})"""


def test_a_key_counts_from_the_moment_in_which_the_conversation_is_there(serve, window):
    served = serve([say("Hi.")])
    me = window(served)
    me.begin("hello")
    me.has_ended()
    me.page.add_init_script(FIRST_MOMENT)
    me.page.reload()
    expect(me.page.get_by_role("searchbox", name="Find in this conversation")).to_be_visible()
    me.is_well()


QUICKLY = """slider => {
  const told = [];
  const press = () => slider.dispatchEvent(
    new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true, cancelable: true}));
  new MutationObserver((_, seen) => {
    told.push(slider.getAttribute('aria-valuetext'));
    if (told.length < 4) press();
    else seen.disconnect();
  }).observe(slider, {attributes: true, attributeFilter: ['aria-valuetext']});
  press();
  return told;
}"""  # the next key in the moment in which the one before shows


def test_no_key_of_the_timeline_is_lost_however_quickly_they_come(serve, window):
    served = serve(MEND, FILES, "--mode", "edits")
    me = window(served)
    me.begin(PROMPT)
    me.has_ended()
    me.page.get_by_role("button", name="Timeline").click()
    slider = me.page.get_by_role("slider", name="Timeline")
    told = slider.evaluate_handle(QUICKLY)
    until(me.page, lambda: len(told.json_value()) == 4)
    assert len(set(told.json_value())) == 4
    me.is_well()


def test_whoever_sends_a_prompt_is_shown_it_also_if_they_had_scrolled_up(serve, window):
    me = window(serve([say("word\n\n" * 200), say("The second answer."), say("The third.")]))
    me.begin("many words")
    me.has_ended()
    feed = me.page.locator(".feed")
    newest = me.page.get_by_role("button", name="Newest")
    for prompt, reply in (("and now?", "The second answer."), ("and then?", "The third.")):
        feed.evaluate("one => { one.scrollTop = 0; }")
        expect(newest).to_be_visible()
        me.send(prompt)
        expect(me.feed.get_by_text(reply)).to_be_in_viewport()
        expect(me.feed.get_by_text(prompt)).to_be_in_viewport()
        expect(newest).to_have_count(0)
    me.is_well()
