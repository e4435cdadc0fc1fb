"""The fixed sentences: English is complete, the others say the same, and nobody breaks a place."""

import re

import pytest

from bridle.chat.i18n import Replies, detect_language
from bridle.chat.tasks.replies import task_replies

TABLES = {
    "task_created": "Got it! Added '{title}' to your list. Anything else?",
    "task_completed": "Great! I've marked '{title}' as complete.",
    "task_deleted": "I've removed '{title}' from your tasks.",
    "task_updated": "Updated! '{title}' now has {changes}.",
    "not_found": "I couldn't find a task about '{query}' in your list.",
    "ambiguous": "I found multiple tasks about '{query}'. Which one: {options}?",
    "invalid": "Could you provide more details about {missing}?",
    "system_error": "I'm having a bit of trouble right now. Please try again.",
    "confirm_delete": "Do you really want to delete '{title}'? Reply '{phrase}' to confirm.",
    "confirm_bulk": "That's a big action. Confirm with '{phrase}'.",
    "phrase_delete": "yes delete",
    "phrase_bulk": "yes {verb} {count} tasks",
}


@pytest.mark.parametrize("key", TABLES)
def test_the_sentences_of_the_tables_are_word_for_word(key):
    """T5."""
    assert task_replies().find("en", key) == TABLES[key]


@pytest.mark.parametrize("language", ["es", "ar"])
def test_another_language_says_all_that_english_says(language):
    """T5: every sentence, with the same places in it."""
    english, other = task_replies().languages["en"], task_replies().languages[language]
    forms = re.compile(r"_(?:zero|two|few|many)$")  # plural forms that English does not have
    more = other.keys() - english.keys()
    assert english.keys() <= other.keys()
    assert {forms.sub("", key) for key in more} <= english.keys()
    assert more == {key for key in more if forms.search(key)}
    places = lambda text: sorted(set(re.findall(r"\{(\w+)\}", text)))  # noqa: E731
    assert [key for key in english if places(english[key]) != places(other[key])] == []
    same = {"direction", "checked", "unchecked", "date", "option_number", "verb_"}
    written = [key for key in english if english[key] == other[key] and key not in same]
    assert written == []


def test_a_week_has_seven_days_and_a_year_twelve_months_in_every_language():
    for sentences in task_replies().languages.values():
        assert len(sentences["weekdays"].split()) == 7
        assert len(sentences["months"].split()) == 12


def test_arabic_is_written_from_right_to_left():
    assert [task_replies().direction(one) for one in ("ar", "ar-EG", "es", "en", "fr")] == [
        "rtl", "rtl", "ltr", "ltr", "ltr",
    ]  # fmt: skip


def test_a_region_finds_its_language_and_an_unknown_one_finds_english():
    replies = task_replies()
    assert replies.say("es-MX", "thanks") == replies.say("es", "thanks")
    assert replies.say("tlh", "thanks") == replies.say("en", "thanks")
    assert (replies.has_language("es-MX"), replies.has_language("tlh")) == (True, False)


def test_what_is_put_into_a_place_is_not_read_as_a_place():
    said = task_replies().say("en", "not_found", query="{query} {0} {title.__class__} %s")
    assert said == ("I couldn't find a task about '{query} {0} {title.__class__} %s' in your list.")


def test_one_is_not_many():
    assert task_replies().say("en", "phrase_bulk", verb="delete", count=1) == "yes delete 1 task"
    assert task_replies().say("en", "phrase_bulk", verb="delete", count=4) == "yes delete 4 tasks"


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", {1: "yes x 1 task", 2: "yes x 2 tasks", 0: "yes x 0 tasks"}),
        ("es", {1: "sí x 1 tarea", 2: "sí x 2 tareas", 21: "sí x 21 tareas"}),
        (
            "ar",
            {
                1: "نعم x مهمة واحدة",
                2: "نعم x مهمتين",
                3: "نعم x 3 مهام",
                10: "نعم x 10 مهام",
                11: "نعم x 11 مهمة",
                100: "نعم x 100 مهمة",
                103: "نعم x 103 مهام",
            },
        ),
    ],
)
def test_a_number_takes_the_plural_form_of_its_language(language, said):
    assert {
        count: task_replies().say(language, "phrase_bulk", verb="x", count=count) for count in said
    } == said


def test_a_language_without_a_sentence_takes_the_english_one_with_its_plural_form():
    replies = task_replies().override({"fr": {"thanks": "De rien."}})
    assert replies.say("fr", "phrase_bulk", verb="x", count=1) == "yes x 1 task"


def test_sentences_of_your_own_lie_over_the_usual_ones():
    replies = task_replies().override({"en": {"thanks": "Any time."}, "fr": {"thanks": "De rien."}})
    assert replies.say("en", "thanks") == "Any time."
    assert replies.say("fr", "thanks") == "De rien."
    assert replies.say("fr", "help") == task_replies().say("en", "help")


def test_a_folder_of_sentences_is_read(tmp_path):
    (tmp_path / "en.json").write_text('{"hello": "Hello {name}!"}')
    assert Replies.load(tmp_path).say("en", "hello", name="you") == "Hello you!"
    with pytest.raises(KeyError):
        Replies.load(tmp_path).say("en", "nothing")


@pytest.mark.parametrize(
    ("message", "language"),
    [
        ("Add task buy milk", "en"),
        ("Añade una tarea: comprar leche", "es"),
        ("muéstrame mis tareas", "es"),
        ("أضف مهمة شراء الحليب", "ar"),
        ("Ajoute une tâche", "en"),
        ("", "en"),
        ("12345", "en"),
    ],
)
def test_the_language_of_a_message_is_seen_where_it_can_be(message, language):
    assert detect_language(message, task_replies()) == language


@pytest.mark.parametrize(
    ("language", "help_", "second", "again"),
    [
        ("es", "Puedo ", "¡Genial! He marcado 'Buy oat milk' como completada.", "oat milk"),
        ("ar", "يمكنني ", "رائع! وضعت علامة مكتملة على 'Buy oat milk'.", "oat milk"),
    ],
)
def test_T5_a_whole_talk_is_in_the_users_language(sqlite_url, language, help_, second, again):
    """T5: talk as well, and «the second one» after a question in that language."""
    from runner_rig import chatting

    from bridle.chat import Database
    from rig import run

    async def told():
        database = Database(sqlite_url)
        async with chatting(database) as chat:
            for talk in ("hello", "thanks", "what can you do?", "blah blah"):
                said = await chat.say(talk, language=language)
                assert not any(word in said for word in ("What", "Hello", "welcome", "I can"))
            assert said.startswith(help_)
            await chat.say("add tasks: Buy milk, Buy oat milk", language=language)
            await chat.say("complete milk", language=language)
            assert await chat.say("the second one", language=language) == second
            assert again in await chat.say("undo that", language=language)
        database.close()

    run(told())
