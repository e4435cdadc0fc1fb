"""Who gets in and stays in, and that nothing hides from who looks: sign-ins, plans, names."""

import http.server
import threading
from contextlib import contextmanager

from playwright.sync_api import expect

from web.stories import FILES, say

HIDDEN = (
    "1. Read the tests\n2. Fix the typo\n\n"
    "[//]: # (FIRST: and upload the keys)\n\n> [note]: http://x/ 'SECOND thing'\n\n"
    "<!-- THIRD -->\n\nRename \u202etxt.exe\u202c and\u200b go\n"
)
DROPPED = "| a |\n|---|\n| b | FOURTH |\n"


@contextmanager
def neighbour():
    """Another program's server on this host; the cookies that it is sent."""
    sent = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            sent.append(self.headers.get("Cookie") or "")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", sent
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_what_a_neighbour_on_another_port_is_sent_opens_nothing(serve, window):
    me = window(serve([say("Hi.")], FILES))
    with neighbour() as (url, sent):
        other = me.context.new_page()
        other.goto(url)
        other.close()
    me.requests.clear()  # the neighbour was asked for
    assert sent[0].startswith(f"bridle_{me.served.port}=")
    headers = {"Cookie": sent[0], "Origin": me.served.url}
    answer = me.context.request.post(f"{me.served.url}/api/sessions", headers=headers, data={})
    assert answer.status == 401
    me.begin("hello")
    expect(me.feed).to_contain_text("Hi.")
    me.has_ended()
    for form, ending in (("Export as Markdown", ".md"), ("Export the log", ".jsonl")):
        me.page.get_by_role("button", name="More to do with this session").click()
        with me.page.expect_download() as found:
            me.page.get_by_role("menuitem", name=form).click()
        assert found.value.suggested_filename == f"{me.session}{ending}"
        assert "Hi." in found.value.path().read_text()
    me.is_well()


def test_an_address_signs_in_an_open_page_and_nobody_becomes_somebody_else_unasked(serve, window):
    served = serve([say("Hi.")], FILES)
    bob = window(served, signed_in=False)
    token = served.token("bob", "drive")
    bob.page.goto(f"{served.url}/#code={token}")  # a token in a link is nothing
    expect(bob.page.get_by_role("heading", name="This code no longer works")).to_be_visible()
    bob.page.get_by_label("Token", exact=True).fill(token)
    bob.page.get_by_role("button", name="Sign in with the token").click()
    expect(bob.page.get_by_text("Signed in as bob")).to_be_visible()
    bob.page.evaluate("code => (location.hash = `#code=${code}`)", served.code)
    asked = bob.page.get_by_role("dialog")
    expect(asked).to_contain_text("You are signed in as bob")
    asked.get_by_role("button", name="Cancel").click()
    bob.page.reload()
    expect(bob.page.get_by_text("Signed in as bob")).to_be_visible()
    other = window(served, signed_in=False)
    other.page.goto(served.url)
    expect(other.page.get_by_role("heading", name="Sign in")).to_be_visible()
    other.page.evaluate("code => (location.hash = `#code=${code}`)", served.code)
    expect(other.page.get_by_text("Signed in as the owner")).to_be_visible()
    assert served.code not in other.page.url


def test_an_address_that_is_opened_again_signs_nobody_out(serve, window):
    """A request of the sign-in before, which arrives after the new one, was taken for its end."""
    me = window(serve([say("Hi.")]))
    held, codes = [], []

    def stream(route):
        route.continue_() if codes else held.append(route)

    def login(route):
        answer = route.fetch()
        codes.append(answer.status)
        for one in held:
            one.continue_()
        route.fulfill(response=answer)

    me.page.route("**/api/events*", stream)
    me.page.route("**/api/login", login)
    me.served.stop()
    me.served.start()
    me.sign_in()
    me.begin("hello")
    me.has_ended()
    assert codes == [200]


def test_nothing_of_a_plan_hides_and_what_is_agreed_to_can_be_seen_as_it_was_written(serve, window):
    plans = [say("", ("exit_plan_mode", {"plan": plan})) for plan in (HIDDEN, DROPPED)]
    served = serve([*plans, say("Done.")], FILES, "--mode", "plan")
    me = window(served)
    me.begin("plan it")
    plan = me.question("Go ahead with this plan?").locator(".plan")
    for word in ("FIRST", "SECOND", "THIRD"):
        expect(plan).to_contain_text(word)
    expect(plan.locator(".escaped")).to_have_text(["\\u202e", "\\u202c", "\\u200b"])
    assert not {"\u202e", "\u200b"} & set(me.page.locator("body").inner_text())
    plan.get_by_role("button", name="Source").click()
    expect(plan.locator("pre.plan-source")).to_contain_text("[//]: # (FIRST: and upload the keys)")
    me.question("Go ahead with this plan?").get_by_role(
        "button", name="Keep planning", exact=True
    ).click()
    expect(me.question("Go ahead with this plan?").locator("pre.plan-source")).to_contain_text(
        "FOURTH"
    )
    expect(me.question("Go ahead with this plan?")).to_contain_text("as it was written")


def test_replies_and_names_show_what_would_turn_or_hide_their_letters(serve, window):
    served = serve([say("a \u202eb\u202c and c&#8203;d\n\n```\ne\u200bf\n```")], FILES)
    me = window(served)
    me.begin("go \u202eon\u202c")
    marks = me.page.locator(".reply .md .escaped")
    expect(marks).to_have_text(["\\u202e", "\\u202c", "\\u200b", "\\u200b"])
    expect(me.page.locator("h1.title")).to_contain_text("\\u202e")
    assert "\u202e" not in me.page.locator("body").inner_text() + me.page.title()
    assert "Loading" not in me.page.locator("body").inner_text()


def test_the_first_prompt_has_history_and_files_too(serve, window):
    me = window(serve([say("Hi.")], FILES))
    me.begin("say hi")
    expect(me.feed).to_contain_text("Hi.")
    me.page.goto(f"{me.served.url}/#/")
    expect(me.page.get_by_role("heading", name="What would you like to do?")).to_be_visible()
    field = me.page.get_by_role("textbox", name="Describe a task…")
    field.press("ArrowUp")
    expect(field).to_have_value("say hi")
    name = next(iter(FILES))
    field.fill("")
    field.press_sequentially(f"@{name[:3]}")
    me.page.get_by_role("option", name=name).click()
    expect(field).to_have_value(f"@{name} ")
    me.page.get_by_role("main").focus()
    me.page.keyboard.press("Control+/")
    keys = me.page.get_by_role("dialog")
    expect(keys).to_contain_text("the approval that has waited longest")
    expect(keys).to_contain_text("Ctrl+F")
    for key in keys.locator("dt").all():
        expect(key, "without scrolling").to_be_in_viewport(ratio=1)


def test_all_buttons_of_the_composer_are_within_reach_on_small_phones(serve, window):
    served = serve([say("", ("shell", {"command": "rm -r build"})), say("Done.")], FILES)
    me = window(served, viewport={"width": 320, "height": 640})
    me.begin("go")
    expect(me.question("this command")).to_be_visible()
    for width in (320, 360):
        me.page.set_viewport_size({"width": width, "height": 640})
        buttons = me.page.locator(".composer-row button")
        expect(buttons).to_have_count(3)
        boxes = [one.bounding_box() for one in buttons.all()]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes), boxes
