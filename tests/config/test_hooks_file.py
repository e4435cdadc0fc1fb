"""Files of hooks: what they may say, what is refused with its line, and whose count where."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.config.folder import FolderConfig, load_hooks
from bridle.config.hooks import MOMENTS, CommandLine, parse_hooks
from bridle.config.trust import HOOKS, Trust
from bridle.errors import ConfigError

FILE = Path("FILE")


def test_a_file_says_when_for_which_tools_what_and_how_long():
    text = """\
# mine
hooks:
  - on: before_tool
    tool: write
    run: ["./check.sh", "--fast"]
    seconds: 2.5
  - {on: [after_tool, after_turn], tool: [edit, mcp_*], run: "make lint >&2"}
  - on: before_prompt
    run: |
      grep -q secret && exit 2
      exit 0
"""
    assert parse_hooks(text, FILE) == (
        CommandLine(("before_tool",), ("./check.sh", "--fast"), ("write",), 2.5, "FILE:3"),
        CommandLine(
            ("after_tool", "after_turn"), "make lint >&2", ("edit", "mcp_*"), 10.0, "FILE:7"
        ),
        CommandLine(
            ("before_prompt",), "grep -q secret && exit 2\nexit 0\n", ("*",), 10.0, "FILE:8"
        ),
    )


def test_a_bare_list_will_do_and_so_will_nothing():
    assert parse_hooks("- {on: after_turn, run: x}", FILE)[0].run == "x"
    for text in ("", "# nothing\n", "hooks:\n", "hooks: []\n"):
        assert parse_hooks(text, FILE) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hooks:\n  on: x", "FILE:1: `hooks` has to be a list"),
        ("hooks:\n  - just words", "FILE:2: a hook has to hold `key: value` lines"),
        ("rules: []", "FILE:1: there is no `rules` in a file of hooks"),
        ("- {on: before_tool}", "FILE:1: this hook does not say `run`"),
        ("- run: x", "FILE:1: this hook does not say `on`"),
        ("- on: before_lunch\n  run: x", "FILE:1: `on` has to name a moment"),
        ("- on: []\n  run: x", "FILE:1: `on` has to name a moment"),
        ("- on: after_turn\n  run: x\n  when: y", "FILE:3: there is no `when` in a hook"),
        ("- on: after_turn\n  run: x\n  run: y", "FILE:3: `run` is set twice"),
        ("- on: after_turn\n  run: 7", "FILE:2: `run` has to be a command"),
        ("- on: after_turn\n  run: []", "FILE:2: `run` has to be a command"),
        ('- on: after_turn\n  run: "a\\x1bb"', "FILE:2: `run` has to be a command"),
        ("- on: after_turn\n  run: x\n  tool: write", "FILE:3: a prompt and a turn have no `tool`"),
        ("- on: after_tool\n  run: x\n  tool: [1]", "FILE:3: `tool` has to be the name"),
        ("- on: after_turn\n  run: x\n  seconds: 0", "FILE:3: `seconds` has to be a number"),
        ("- on: after_turn\n  run: x\n  seconds: .nan", "FILE:3: `seconds` has to be a number"),
        ("- on: after_turn\n  run: x\n  seconds: true", "FILE:3: `seconds` has to be a number"),
        ("- on: after_turn\n  run: x\n  seconds: 601", "FILE:3: `seconds` has to be a number"),
        ("- on: [", "FILE:1: this is not YAML"),
        ("- {on: after_turn, run: !!python/name:os.system x}", "FILE:1: this is not YAML"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line_and_a_hint(text, said):
    with pytest.raises(ConfigError) as refused:
        parse_hooks(text, FILE)
    assert refused.value.message.startswith(said)
    assert refused.value.hint


@given(st.text(st.sampled_from("- onrubefr_tl:[]{}\"'\n#|>&*!%\x00\ud800é7."), max_size=80))
def test_any_text_is_hooks_or_a_clear_refusal(text):
    try:
        found = parse_hooks(text, FILE)
    except ConfigError as refused:
        assert refused.message.startswith("FILE")
    else:
        assert all(set(one.moments) <= set(MOMENTS) for one in found)


@pytest.fixture
def places(tmp_path):
    environ = {"HOME": str(tmp_path / "home"), "BRIDLE_STATE": str(tmp_path / "state")}
    mine = tmp_path / "home/.config/bridle/hooks.yaml"
    mine.parent.mkdir(parents=True)
    root = tmp_path / "w"
    (root / ".bridle").mkdir(parents=True)
    return environ, mine, root


def test_the_person_s_hooks_come_first_and_a_folder_s_only_where_it_is_trusted(places):
    environ, mine, root = places
    assert load_hooks(root, environ) == FolderConfig()
    mine.write_text("- {on: after_turn, run: mine}")
    theirs = root / HOOKS
    theirs.write_text("- {on: after_turn, run: theirs}")
    found = load_hooks(root, environ)
    assert [one.run for one in found.items] == ["mine"]
    ((note, hint),) = found.notes
    assert (note, "bridle trust" in hint) == (
        "this folder has its own hooks, which do not run",
        True,
    )
    Trust(environ["BRIDLE_STATE"]).grant(root)
    found = load_hooks(root, environ)
    assert ([one.run for one in found.items], found.notes) == (["mine", "theirs"], ())
    theirs.write_text("- {on: after_turn, run: evil}")
    assert [one.run for one in load_hooks(root, environ).items] == ["mine"]


def test_an_untrusted_file_is_not_even_read_and_a_trusted_bad_one_refuses(places):
    environ, _, root = places
    (root / HOOKS).write_text("- [")
    assert load_hooks(root, environ).items == ()
    Trust(environ["BRIDLE_STATE"]).grant(root)
    with pytest.raises(ConfigError, match=r"hooks.yaml:1: this is not YAML"):
        load_hooks(root, environ)


def test_a_hook_says_what_it_does_on_one_line():
    one = CommandLine(("before_tool", "after_tool"), ("./a", "b"), ("write", "edit"))
    assert one.summary == "before_tool, after_tool of write, edit: ./a b"
    assert CommandLine(("after_turn",), "make").summary == "after_turn: make"


def test_the_scripts_that_a_folder_s_hooks_name_are_trusted_with_them(places):
    environ, _, root = places
    (root / HOOKS).write_text("- {on: after_turn, run: [./check]}")
    (root / ".bridle/check").write_text("good")
    (root / ".bridle/notes").write_text("not named")
    trust = Trust(environ["BRIDLE_STATE"])
    assert [one.name for one in trust.files(root)] == [HOOKS, ".bridle/check"]
    trust.grant(root)
    assert [one.run for one in load_hooks(root, environ).items] == [("./check",)]
    (root / ".bridle/notes").write_text("whatever")
    assert load_hooks(root, environ).notes == ()
    (root / ".bridle/check").write_text("evil")
    found = load_hooks(root, environ)
    assert (found.items, len(found.notes), trust.is_trusted(root)) == ((), 1, False)
