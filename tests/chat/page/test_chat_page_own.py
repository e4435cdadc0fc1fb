"""The page of an assistant of one's own, and what it says where only English is understood."""

import pytest
from click.testing import CliRunner
from playwright.sync_api import expect
from rig_chat_page import ChatServed, ChatWindow

from bridle.cli.main import commands
from web.rig_page import PHONE

LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>'


@pytest.fixture
def own(tmp_path):
    """What `bridle new chat-app` writes, served."""
    folder = tmp_path / "pocket-notes"
    assert CliRunner().invoke(commands, ["new", "chat-app", str(folder)]).exit_code == 0
    served = ChatServed(folder, "--app", "pocket_notes.app:app")
    yield served
    served.stop()


def text_of(page):
    return page.title() + page.locator("body").inner_text() + page.content()


@pytest.mark.parametrize("locale", ["en-US", "es", "ar"])
def test_a_new_chat_app_has_its_own_name_logo_suggestions_and_first_words(browser, own, locale):
    own.start()
    me = ChatWindow(browser, own, locale=locale)
    me.page.goto(f"{own.url}/chat")
    expect(me.page.get_by_text("Pocket notes")).to_be_visible()  # before anybody has signed in
    me.sign_in("ana")
    expect(me.page.get_by_role("heading", name="Pocket notes", level=1)).to_be_visible()
    expect(me.page.get_by_role("heading", name="What should I remember?")).to_be_visible()
    expect(me.page).to_have_title("Pocket notes · ana")
    assert me.page.locator("aside").count() == 0
    shown = text_of(me.page)
    assert [
        word for word in ("Tasks", "tasks", "Tareas", "tareas", "المهام") if word in shown
    ] == []
    logo = me.page.request.get(f"{own.url}/chat/favicon.svg")
    assert (logo.headers["content-type"], ">P</text>" in logo.text()) == ("image/svg+xml", True)
    me.page.get_by_role("button", name="Note that the key is under the mat").click()
    expect(me.log.locator(".line.assistant.there").last).to_contain_text(
        "Noted: 'the key is under the mat'."
    )
    me.is_well()
    me.context.close()


def test_a_title_a_logo_and_suggestions_of_ones_own_are_shown(browser, own):
    profile = own.folder / "pocket_notes" / "profile.py"
    (own.folder / "pocket_notes" / "mark.svg").write_text(LOGO)
    text = profile.read_text()
    text = text.replace('title="Pocket notes"', 'title="Zettel", logo=__file__[:-10] + "mark.svg"')
    profile.write_text(text.replace('"My notes", ', '"Show <b>all</b> notes", '))
    own.start()
    me = ChatWindow(browser, own).sign_in("ana")
    expect(me.page.get_by_role("heading", name="Zettel", level=1)).to_be_visible()
    expect(me.page.get_by_role("button", name="Show <b>all</b> notes")).to_be_visible()
    assert me.page.request.get(f"{own.url}/chat/favicon.svg").text() == LOGO
    assert me.page.evaluate("document.querySelector('.mark').naturalWidth") > 0
    me.is_well()
    me.context.close()


def test_long_words_of_ones_own_stay_on_a_phone(browser, own):
    profile = own.folder / "pocket_notes" / "profile.py"
    long = (
        "Note that this is a long suggestion, longer by far than any phone is wide, and " + "x" * 60
    )
    text = profile.read_text().replace('"My notes", ', f'"My notes", "ملاحظاتي", "{long}", ')
    title = "Everything that I want to remember"
    profile.write_text(text.replace('title="Pocket notes"', f'title="{title}"'))
    own.start()
    me = ChatWindow(browser, own, viewport=PHONE, is_mobile=True, has_touch=True).sign_in("ana")
    expect(me.page.get_by_role("heading", name=title, level=1)).to_be_visible()
    for button in me.page.locator("button:visible").all():
        box = button.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"], button.inner_text()
    me.page.get_by_role("button", name=long).tap()
    expect(me.log.locator(".line.assistant.there").last).to_contain_text("Noted: 'this is a long")
    assert me.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    me.is_well()
    me.context.close()


@pytest.mark.parametrize(
    ("locale", "note", "reply"),
    [
        ("es", "sin modelo de lenguaje y solo entiende: inglés.", "solo entiendo inglés"),
        ("ar", "ولا يفهم إلا: الإنجليزية.", "لا أفهم إلا الإنجليزية"),
    ],
)
def test_a_page_in_a_language_that_the_rules_do_not_understand_says_so(window, locale, note, reply):
    me = window("ana", locale=locale)
    said = me.page.get_by_role("note")
    expect(said).to_contain_text(note)
    me.say("añade comprar pan mañana", reply)
    expect(said).to_be_visible()
    me.page.get_by_role("combobox").first.select_option("en")
    expect(said).to_have_count(0)
    me.is_well()


def test_the_list_shows_the_time_as_the_reply_does_and_nothing_that_looks_clickable(window):
    me = window("ana")
    me.say("add call Bob tomorrow at 3pm", ", 15:00.")
    expect(me.tasks.get_by_text("Tomorrow 15:00")).to_be_visible()
    assert me.tasks.locator(".box, input, [role=checkbox], button").count() == 0
    me.is_well()
