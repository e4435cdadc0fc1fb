"""What could be completed and what matches: pure functions, and what is folded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.presentation.commands import TABLE, Command
from bridle.tui.model.fuzzy import best_matches, matches
from bridle.tui.widgets.completion import (
    Target,
    argument_choices,
    command_choices,
    completion_target,
    file_choices,
    is_complete,
)
from bridle.tui.widgets.composer import Pastes


@pytest.mark.parametrize(
    ("line", "row", "found"),
    [
        ("/", 0, Target("command", "", 0)),
        ("/mo", 0, Target("command", "mo", 0)),
        ("/mo", 1, None),
        (" /mo", 0, None),
        ("/usr/bin", 0, None),
        ("/mode a", 0, Target("argument", "a", 6, "mode")),
        ("/rename a", 0, None),
        ("/mode auto now", 0, None),
        ("@src", 0, Target("file", "src", 0)),
        ("see (@src/a", 2, Target("file", "src/a", 5)),
        ("me@home", 0, None),
        ("@a b", 0, None),
        ("/rename @a", 0, Target("file", "a", 8)),
    ],
)
def test_what_is_wanted_where_the_cursor_stands(line, row, found):
    assert completion_target(line, row, len(line)) == found


def test_what_stands_behind_the_cursor_does_not_count():
    assert completion_target("/mode x", 0, 3) == Target("command", "mo", 0)


def test_every_command_is_offered_and_the_exact_name_comes_first():
    assert len(command_choices("")) == len(TABLE)
    for one in TABLE:
        assert command_choices(one.name)[0].text == f"/{one.name}"
        assert is_complete(Target("command", one.name, 0), "/other")


def test_letters_in_their_order_will_do_where_no_name_begins_so():
    assert command_choices("xprt")[0].text == "/export"
    assert command_choices("zzz") == ()


def test_a_users_own_commands_stand_beside_ours():
    own = (Command(name="review", meaning="\x1b[2J look", own="x"),)
    (found,) = command_choices("revi", own)
    assert (found.text, found.about) == ("/review", "\\x1b[2J look")


def test_arguments_come_from_a_list_or_from_the_house():
    fixed = argument_choices(Target("argument", "pl", 6, "mode"))
    assert [one.text for one in fixed] == ["plan"]
    asked = argument_choices(Target("argument", "", 7, "model"), [("a/b\x1b", "x"), ("c", "")])
    assert [one.text for one in asked] == ["a/b\\x1b", "c"]


def test_files_with_spaces_are_quoted():
    assert [one.text for one in file_choices(["a b", "c"])] == ['@"a b"', "@c"]


def test_the_best_file_comes_first():
    names = ["docs/composer/notes.md", "src/tui/widgets/composer.py", "src/tui/widgets/composer.py"]
    assert best_matches("composer", names)[0] == "src/tui/widgets/composer.py"
    assert best_matches("tuicomp", names)[0] == "src/tui/widgets/composer.py"
    assert best_matches("notes", names) == ("docs/composer/notes.md",)
    assert best_matches("", names, 2) == tuple(names[:2])


@given(st.text(max_size=12), st.lists(st.text(max_size=20), max_size=20))
def test_whatever_is_typed_what_is_found_fits_and_is_found_once_each(query, names):
    found = best_matches(query, names)
    assert all(matches(query, one) for one in found)
    if query.strip():
        assert sorted(found) == sorted(one for one in names if matches(query, one))


def test_markers_of_one_size_are_told_apart_and_a_changed_one_is_plain_text():
    pastes = Pastes()
    one, two = "a\n" * 30, "b\n" * 30
    first, second = pastes.fold(one), pastes.fold(two)
    assert (first, second) == ("[pasted 30 lines]", "[pasted 30 lines #2]")
    assert pastes.fold(one) == first
    assert pastes.unfold(f"{second} {first} [pasted 31 lines]") == f"{two} {one} [pasted 31 lines]"


@given(st.lists(st.text(max_size=60), max_size=4))
def test_whatever_is_pasted_comes_out_whole(texts):
    pastes = Pastes()
    folded = [pastes.fold(one * 60) for one in texts]
    whole = [Pastes().fold(one * 60, is_paste=False) for one in texts]
    for shown, said in zip(folded, whole, strict=True):
        if not said.startswith("[pasted"):
            assert pastes.unfold(shown) == said
