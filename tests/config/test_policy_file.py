"""Files of rules: what they say, and that a bad one is refused with its line (A5)."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.config.folder import FolderConfig, load_rules
from bridle.config.paths import policy_file
from bridle.config.policy import Example, RuleFile, add_rule, parse_rules, read_rules
from bridle.config.trust import POLICY, Trust
from bridle.errors import ConfigError
from bridle.policy import Rule
from bridle.workspace.fs import replace_file

FILE = Path("policy.yaml")
TODAY = date(2030, 6, 15)


def parsed(text):
    return parse_rules(text, FILE, TODAY)


def test_rules_are_lines_or_mappings_and_know_where_they_stand():
    found = parsed(
        "rules:\n"
        '  - "allow: shell(git status)"\n'
        "  - ask: write(**/*.sql)\n"
        "    reason: it is the customers' data\n"
        "  - deny: shell(curl *)\n"
    )
    assert found == RuleFile(
        FILE,
        (
            Rule("allow", "shell", "git status", "policy.yaml:2"),
            Rule("ask", "write", "**/*.sql", "policy.yaml:3", "it is the customers' data"),
            Rule("deny", "shell", "curl *", "policy.yaml:5"),
        ),
    )


def test_examples_are_of_the_tool_that_the_rule_is_about():
    found = parsed(
        "rules:\n"
        "  - allow: shell(git push origin feature/*)\n"
        "    examples:\n"
        "      allow: [git push origin feature/x]\n"
        "      ask: git push origin main\n"
        "  - ask: write(*.sql)\n"
        "    examples: {ask: [a.sql, shell: echo > a.sql]}\n"
        "examples:\n"
        "  deny: [rm -rf /]\n"
    )
    assert found.examples == (
        Example("allow", "shell", "git push origin feature/x", "policy.yaml:4"),
        Example("ask", "shell", "git push origin main", "policy.yaml:5"),
        Example("ask", "write", "a.sql", "policy.yaml:7"),
        Example("ask", "shell", "echo > a.sql", "policy.yaml:7"),
        Example("deny", "shell", "rm -rf /", "policy.yaml:9"),
    )


@pytest.mark.parametrize(
    ("day", "holds"), [("2030-06-14", 0), ("2030-06-15", 1), ("2031-01-01", 1)]
)
def test_a_rule_holds_to_the_end_of_its_last_day(day, holds):
    found = parsed(f"rules:\n- allow: shell(x)\n  expires: {day}\n  examples: {{allow: x}}\n")
    assert (len(found.rules), len(found.expired), len(found.examples)) == (holds, 1 - holds, holds)


@pytest.mark.parametrize("text", ["", "\n# nothing yet\n", "rules:\n", "rules: []\n"])
def test_a_file_may_say_nothing(text):
    assert parsed(text) == RuleFile(FILE)


BAD = [
    ("rules:\n  - allow: *\n", 2, "this is not YAML"),
    ("rules:\n- allow: shell(a: b)\n", 2, "this is not YAML"),
    ("rules:\n- allow: shell(a # b)\n", 2, "`allow: shell(a` is not a rule"),
    ("rules:\n\t- x\n", 2, "this is not YAML"),
    ("- allow: shell\n", 1, "the file has to hold `key: value` lines"),
    ("rule: []\n", 1, "there is no `rule` in a file of rules"),
    ("rules:\n- allow: shell\nrules:\n- deny: shell\n", 3, "`rules` is set twice"),
    ("rules: {allow: shell}\n", 1, "`rules` has to be a list"),
    ("rules: yes\n", 1, "`rules` has to be a list"),
    ("rules:\n- alow: shell\n", 2, "there is no `alow` in a rule"),
    ("rules:\n- reason: x\n", 2, "a rule says one thing, and this one 0"),
    ("rules:\n- allow: shell\n  deny: shell\n", 2, "a rule says one thing, and this one 2"),
    ("rules:\n- allow: shell\n  allow: read\n", 3, "`allow` is set twice"),
    ("rules:\n- allow: shell()\n", 2, "there is nothing between the parentheses"),
    ("rules:\n- 'permit: shell'\n", 2, "a rule cannot say `permit`"),
    ("rules:\n- 5\n", 2, "`5` is not a rule"),
    ("rules:\n- [a]\n", 2, "a rule has to hold `key: value` lines"),
    ("rules:\n- allow: yes\n", 2, "`allow` has to be text on one line"),
    ("rules:\n- allow: shell\n  reason: [a]\n", 3, "`reason` has to be text on one line"),
    ("rules:\n- allow: shell\n  expires: soon\n", 3, "`expires` has to be a day"),
    ("rules:\n- allow: shell\n  expires: 2026-13-01\n", 3, "`expires` has to be a day"),
    ("rules:\n- allow: shell\n  examples: [a]\n", 3, "`examples` has to hold `key: value` lines"),
    ("rules:\n- allow: shell\n  examples: {no: a}\n", 3, "an example cannot be expected to `no`"),
    ("rules: &x\n- *x\n", 1, "a rule has to hold `key: value` lines"),
    ("rules: []\n---\nrules: []\n", 2, "this is not YAML"),
    ("rules:\n# é\n- allow: shell(\x01)\n", 3, "this is not YAML: it holds the character U+0001"),
    ("\0", 1, "this is not YAML: it holds the character U+0000"),
]


@pytest.mark.parametrize(("text", "line", "problem"), BAD)
def test_a_bad_file_is_refused_with_its_line_and_what_is_expected(text, line, problem):
    """Half a policy is none."""
    with pytest.raises(ConfigError) as caught:
        parsed(text)
    assert caught.value.message.startswith(f"policy.yaml:{line}: {problem}")
    assert caught.value.hint


@given(st.text(alphabet="rules:- \n\tallowdenyshk(){}[]'\"*&!|>#,0", max_size=60))
def test_any_text_is_rules_or_a_complaint(text):
    try:
        found = parsed(text)
    except ConfigError as error:
        assert error.hint
    else:
        assert isinstance(found, RuleFile)


def test_a_file_that_cannot_be_read_says_so(tmp_path):
    for data, problem in [(b"\xff", ":1: this line is not valid UTF-8"), (b"#" * 1_000_001, "too")]:
        path = tmp_path / "policy.yaml"
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=problem):
            read_rules(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_rules(tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        read_rules(tmp_path / "none", required=True)
    assert read_rules(tmp_path / "none") == RuleFile(tmp_path / "none")


def test_a_link_that_leads_nowhere_is_no_file_without_rules(tmp_path):
    """Rules that forbid would be gone, and nobody would know."""
    (tmp_path / "policy.yaml").symlink_to("dotfiles/policy.yaml")
    with pytest.raises(ConfigError, match=r"is a link to dotfiles/policy.yaml, which is not there"):
        read_rules(tmp_path / "policy.yaml")
    (tmp_path / "config").symlink_to("dotfiles")
    with pytest.raises(ConfigError, match=r"config is a link to dotfiles, which is not there"):
        read_rules(tmp_path / "config/policy.yaml")


@pytest.fixture
def places(tmp_path):
    """A home with rules, a folder with rules, and the environment that says where they are."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    (home / ".config/bridle").mkdir(parents=True)
    (folder / ".bridle").mkdir(parents=True)
    (home / ".config/bridle/policy.yaml").write_text("rules:\n- allow: shell(mine)\n")
    (folder / POLICY).write_text("rules:\n- deny: shell(theirs)\n")
    return {"HOME": str(home), "BRIDLE_STATE": str(tmp_path / "state")}, folder


def words(config):
    return [str(rule) for rule in config.items]


def test_the_rules_of_a_folder_count_once_it_is_trusted_and_as_long_as_they_stay(places):
    environ, folder = places
    before = load_rules(folder, environ)
    assert words(before) == ["allow: shell(mine)"]
    assert len(before.notes) == 1
    Trust(environ["BRIDLE_STATE"]).grant(folder)
    after = load_rules(folder, environ)
    assert (words(after), after.notes) == (["allow: shell(mine)", "deny: shell(theirs)"], ())
    (folder / POLICY).write_text("rules:\n- allow: '*'\n")
    assert load_rules(folder, environ) == before


def test_without_files_there_are_no_rules_and_nothing_to_say(tmp_path):
    environ = {"HOME": str(tmp_path), "BRIDLE_STATE": str(tmp_path / "state")}
    assert load_rules(tmp_path, environ) == FolderConfig()


def test_a_bad_file_of_a_folder_that_is_not_trusted_is_nobodys_business(places):
    environ, folder = places
    (folder / POLICY).write_text("rules: {\n")
    assert words(load_rules(folder, environ)) == ["allow: shell(mine)"]
    Trust(environ["BRIDLE_STATE"]).grant(folder)
    with pytest.raises(ConfigError, match="this is not YAML"):
        load_rules(folder, environ)


def test_a_folder_that_is_trusted_does_not_lose_its_rules_to_a_link_that_leads_nowhere(places):
    environ, folder = places
    Trust(environ["BRIDLE_STATE"]).grant(folder)
    (folder / POLICY).rename(folder / "kept.yaml")
    (folder / POLICY).symlink_to("gone.yaml")
    with pytest.raises(ConfigError, match=r"is a link to gone.yaml, which is not there"):
        load_rules(folder, environ)
    Trust(environ["BRIDLE_STATE"]).revoke(folder)
    assert len(load_rules(folder, environ).notes) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "rules:\n  - allow: 'shell(ls)'\n"),
        ("# mine\n", "# mine\n\nrules:\n  - allow: 'shell(ls)'\n"),
        ("rules:", "rules:\n  - allow: 'shell(ls)'\n"),
        ("rules:\n- deny: read # x\n", "rules:\n- allow: 'shell(ls)'\n- deny: read # x\n"),
        ("examples: {}\n", "examples: {}\n\nrules:\n  - allow: 'shell(ls)'\n"),
        ("rules:\n- allow: shell(ls)\n", "rules:\n- allow: shell(ls)\n"),
    ],
)
def test_a_rule_made_of_an_answer_is_put_before_the_others_and_all_else_stays(
    tmp_path, before, after
):
    path = tmp_path / "new" / "policy.yaml"
    if before is not None:
        path.parent.mkdir()
        path.write_text(before)
    add_rule(path, "allow: shell(ls)")
    assert path.read_text() == after
    assert before is not None or path.stat().st_mode & 0o077 == 0


def test_a_learnt_rule_says_where_it_came_from_beside_it_and_touches_no_other_comment(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("rules:\n  # mine\n  - deny: read  # always\n")
    add_rule(path, "allow: shell(ls)", "from an answer by\nada: #1")
    assert path.read_text() == (
        "rules:\n  # mine\n"
        "  - allow: 'shell(ls)'  # from an answer byada: #1\n"
        "  - deny: read  # always\n"
    )


def test_a_file_with_no_place_for_another_rule_is_left_as_it_is(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("rules: ['deny: read']\n")
    with pytest.raises(ConfigError) as caught:
        add_rule(path, "allow: shell(it's # odd)")
    assert caught.value.hint == "Write it there yourself: - allow: shell(it's # odd)"
    assert path.read_text() == "rules: ['deny: read']\n"


@given(st.text(alphabet="ab '\"\\:#-{}[]&*!|>%@`,?éß", min_size=1, max_size=30))
def test_what_is_learnt_is_read_back_word_for_word(tmp_path_factory, pattern):
    path = tmp_path_factory.mktemp("learnt") / "policy.yaml"
    path.write_text("rules:\n  - deny: read\n")
    try:
        rule = add_rule(path, f"allow: shell({pattern})")
    except ConfigError:
        assert not pattern.strip()
        return
    assert [str(one) for one in read_rules(path).rules] == [str(rule), "deny: read"]


def test_rules_that_are_learnt_in_the_same_moment_are_all_kept(tmp_path):
    path = tmp_path / "policy.yaml"
    words = [f"allow: shell(ls {number})" for number in range(16)]
    with ThreadPoolExecutor(16) as crowd:
        list(crowd.map(lambda one: add_rule(path, one), words))
    assert sorted(str(one) for one in read_rules(path).rules) == sorted(words)


def test_a_rule_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    path = tmp_path / "policy.yaml"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(path, b"rules: []")
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_in_the_place_of_a_file_is_refused_and_nobody_waits_for_it(tmp_path):
    path = tmp_path / "policy.yaml"
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="it is not a regular file"):
        read_rules(path)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_rule_with_a_folder_counts_there_and_nowhere_else(tmp_path):
    here, link = tmp_path / "here", tmp_path / "link"
    here.mkdir()
    link.symlink_to(here)
    real = os.path.realpath(here)
    text = (
        f"rules:\n- allow: shell(a)\n  in: {real}/\n  examples: {{allow: [a]}}\n"
        "- allow: shell(b)\n  in: /elsewhere\n  examples: {allow: [b]}\n- deny: shell(c)\n"
    )
    a = Rule("allow", "shell", "a", "policy.yaml:2", where=real)
    b = Rule("allow", "shell", "b", "policy.yaml:5", where="/elsewhere")
    c = Rule("deny", "shell", "c", "policy.yaml:8")
    example = Example("allow", "shell", "a", "policy.yaml:4")
    for root in (here, link):
        found = parse_rules(text, FILE, root=root)
        assert (found.rules, found.elsewhere, found.examples) == ((a, c), (b,), (example,))
    assert parse_rules(text, FILE) == RuleFile(FILE, (c,), (), (), (a, b))


@pytest.mark.parametrize("said", ["src", "~/x", "3", "[a]"])
def test_a_folder_that_is_no_whole_path_is_refused(said):
    with pytest.raises(ConfigError, match=r"policy\.yaml:3: `in` has to be"):
        parse_rules(f"rules:\n- allow: shell(a)\n  in: {said}\n", FILE)


def test_a_rule_that_is_learnt_in_a_folder_stands_in_no_other(tmp_path):
    """(A13)"""
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}
    path = policy_file(environ)
    mine, other = tmp_path / "it's mine", tmp_path / "other"
    for one in (mine, other):
        one.mkdir()
        for _ in range(2):
            add_rule(path, "allow: shell(make)", "a note", os.path.realpath(one))
    add_rule(path, "allow: shell(ls)", where=os.path.realpath(mine))
    assert [str(one) for one in load_rules(mine, environ).items] == [
        "allow: shell(ls)",
        "allow: shell(make)",
    ]
    assert [str(one) for one in load_rules(other, environ).items] == ["allow: shell(make)"]
    assert load_rules(tmp_path, environ).items == ()


def test_a_rule_that_counts_everywhere_is_not_learnt_again_for_a_folder(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("rules:\n- allow: shell(ls)\n")
    add_rule(path, "allow: shell(ls)", where="/w")
    assert path.read_text() == "rules:\n- allow: shell(ls)\n"
