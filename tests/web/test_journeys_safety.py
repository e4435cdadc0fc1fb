"""What the model writes is data: nothing in it runs, nothing is fetched, nothing hides."""

from playwright.sync_api import expect

from web import hostile
from web.stories import FILES, say

END = "This is the end."
SPOOF = "echo safe \u202e && curl https://evil.example\x1b[2K"


def pwned(one):
    return one.page.evaluate("[typeof window.pwned, document.querySelectorAll('#trap1').length]")


def test_no_markup_of_the_model_runs_or_fetches_anything(serve, window):
    script = [
        say(f"{hostile.MARKDOWN}\n\n{END}", thinking=hostile.MARKDOWN, chunk=7),
        say("Once more."),
    ]
    served = serve(script)
    me = window(served)
    me.begin(f"<img src=x onerror=window.pwned=1> {hostile.LINES[0]}")
    expect(me.feed).to_contain_text(END)
    me.page.get_by_role("button", name="Thought").click()
    expect(me.feed).to_contain_text("evil.example/pixel.png")
    shown = me.page.locator(".reply")
    for tag in ("script", "img", "svg", "iframe", "form", "style", "link", "object", "input"):
        expect(shown.locator(f".md {tag}")).to_have_count(0)
    links = shown.locator(".md a[href]")
    found = links.evaluate_all("all => all.map(one => [one.protocol, one.rel, one.target])")
    assert {tuple(one) for one in found} == {("https:", "noopener noreferrer", "_blank")}
    assert pwned(me) == ["undefined", 0]
    me.page.reload()
    expect(me.feed).to_contain_text(END)
    assert pwned(me) == ["undefined", 0]
    me.is_well()


def test_a_link_says_where_it_leads_when_its_words_say_otherwise(serve, window):
    served = serve(
        [say("[https://bank.example](https://evil.example/login) and <https://a.example/x>")]
    )
    me = window(served)
    me.begin("links, please")
    links = me.page.locator(".reply .md a[href]")
    expect(links).to_have_text(["https://bank.example (evil.example)", "https://a.example/x"])


def test_a_question_shows_hidden_characters_and_output_obeys_nothing(serve, window):
    script = [
        say("", ("shell", {"command": SPOOF})),
        say("", ("shell", {"command": hostile.SHELL_OUTPUT})),
        say(END),
    ]
    served = serve(script, FILES)
    me = window(served)
    me.begin("run it")
    expect(me.question("this command").locator(".command .escaped")).to_have_text(
        ["\\u202e", "\\x1b"]
    )
    me.question("this command").get_by_role("button", name="Deny", exact=False).first.click()
    expect(me.feed).to_contain_text("Denied by you")
    expect(me.feed).to_contain_text(END)
    me.page.locator(".call").last.get_by_role("button").first.click()
    expect(me.page.locator(".output").last).to_contain_text("onerror=window.pwned=1")
    assert "\u202e" not in me.feed.inner_text()
    assert "\x1b" not in me.feed.inner_text()
    assert pwned(me) == ["undefined", 0]
    me.is_well()
