"""Ten thousand records: the page opens at the end, scrolls, finds and goes back in time."""

import re

import pytest
from playwright.sync_api import expect

from web import long_log
from web.rig_page import Served
from web.stories import say

MOST_NODES = 3000
TO_THE_FIRST = """() => new Promise((done) => {
  const feed = document.querySelector('.feed');
  const look = () => {
    feed.scrollTop = 0;  // each time a page of older records may come in front
    if (feed.textContent.includes('Prompt 1:')) done();
    else setTimeout(look, 50);
  };
  look();
})"""


@pytest.fixture
def long(tmp_path):
    """A server with one long session; how many turns that has."""
    served = Served(tmp_path, [say("One more.")])
    turns = long_log.write(tmp_path / "state", served.workspace, 10_000)
    served.start()
    yield served, turns
    served.stop()


def nodes(one):
    return one.page.evaluate("document.querySelectorAll('*').length")


def test_ten_thousand_records_open_at_the_end_and_scroll_to_the_beginning(long, window):
    served, turns = long
    me = window(served)
    me.page.goto(f"{served.url}/#/s/{long_log.SESSION}")
    expect(me.feed).to_contain_text(f"Module {turns} is sound.")
    assert nodes(me) < MOST_NODES
    me.page.evaluate(TO_THE_FIRST)
    expect(me.feed).to_contain_text("Prompt 1:")
    assert nodes(me) < MOST_NODES
    me.page.get_by_role("button", name="Newest").click()
    expect(me.feed).to_contain_text(f"Module {turns} is sound.")
    me.is_well()


def test_what_is_seen_stays_where_it_is_while_older_records_come(long, window):
    served, turns = long
    me = window(served)
    me.page.goto(f"{served.url}/#/s/{long_log.SESSION}")
    expect(me.feed).to_contain_text(f"Module {turns} is sound.")
    before = me.page.evaluate(
        """() => new Promise((done) => {
          const feed = document.querySelector('.feed');
          const height = feed.scrollHeight;
          feed.scrollTop = 300;
          const first = () => [...feed.querySelectorAll('article')]
            .map((one) => [one.dataset.key, Math.round(one.getBoundingClientRect().top)])
            .find(([, top]) => top > 100);
          let seen = null;
          requestAnimationFrame(() => requestAnimationFrame(() => {
            seen = first();
            const look = () => {
              if (feed.scrollHeight < height + 2000) return requestAnimationFrame(look);
              const now = feed.querySelector(`article[data-key="${seen[0]}"]`);
              done(Math.abs(Math.round(now.getBoundingClientRect().top) - seen[1]));
            };
            look();
          }));
        })"""
    )
    assert before <= 2


def test_words_far_away_are_found_in_the_conversation(long, window):
    served, turns = long
    me = window(served)
    me.page.goto(f"{served.url}/#/s/{long_log.SESSION}")
    expect(me.feed).to_contain_text(f"Module {turns} is sound.")
    wanted = turns - 12
    expect(me.feed).not_to_contain_text(f"Prompt {wanted}:")
    me.page.keyboard.press("Control+f")
    me.page.get_by_role("searchbox", name="Find in this conversation").fill(f"prompt {wanted}:")
    expect(me.feed).to_contain_text(f"Prompt {wanted}:")
    expect(me.page.locator(".find-told")).to_have_text("1 of 1, older records not searched")
    me.page.keyboard.press("Escape")
    expect(me.page.get_by_role("searchbox", name="Find in this conversation")).to_have_count(0)


def test_the_timeline_shows_the_session_as_it_was_and_comes_back(long, window):
    served, turns = long
    me = window(served)
    me.page.goto(f"{served.url}/#/s/{long_log.SESSION}")
    expect(me.feed).to_contain_text(f"Module {turns} is sound.")
    slider = me.page.get_by_role("slider", name="Timeline")
    me.page.get_by_role("button", name="Timeline").click()
    slider.focus()
    slider.press("PageDown")
    slider.press("PageDown")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"^turn {turns - 1}, prompt: "))
    expect(me.feed).not_to_contain_text(f"Prompt {turns}:")
    expect(me.page.locator("#composer")).to_have_count(0)  # the past cannot be changed
    slider.click(position={"x": 4, "y": 12})  # the first of what is loaded
    expect(me.feed).not_to_contain_text(f"Prompt {turns - 1}:")
    expect(me.feed.locator("article").first).to_be_visible()
    me.page.get_by_role("button", name="Back to now").click()
    expect(me.feed).to_contain_text(f"Module {turns} is sound.")
    me.send("and one more")
    expect(me.feed).to_contain_text("One more.")
