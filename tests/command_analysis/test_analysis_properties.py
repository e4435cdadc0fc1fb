"""Whatever the text: judging ends with an answer, and what is hostile in it is never lost."""

import string

from deciding import decided, understood, verdict
from hostile import ASKED, FLOOR, GUARDED
from hypothesis import given
from hypothesis import strategies as st
from surroundings import SEPARATORS, WRAPPERS

from bridle.command_analysis import checks, programs
from bridle.command_analysis.argv import Arg, flag_table, join_quoted, parse_arguments
from bridle.command_analysis.findings import CommandAnalysis
from bridle.command_analysis.parser import parse
from bridle.policy import ORDER

EVERYDAY = sorted({line for entry in programs.PROGRAMS.values() for line in entry.runs})
HOSTILE = [*ASKED, *GUARDED, *FLOOR]
SHELL_WORDS = (
    "ls cat rm -rf / ~ . .. * $HOME $(pwd) `id` ; && || | & > < >> << 2>&1 ( ) { } ' \" \\ # ! = -"
)
PROGRAMS = (
    "sudo env xargs find -exec {} + -delete sh -c git status cd timeout 5 eval if then fi EOF 'a b'"
)
PIECES = [
    *SHELL_WORDS.split(),
    *PROGRAMS.split(),
    " ",
    "\n",
    "\0",
    "\u2028",
    "A=b",
    "PATH=x",
    "[a]",
]
TEXT = st.one_of(
    st.text(max_size=200),
    st.text(alphabet=string.printable, max_size=200),
    st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
)
everyday, hostile = st.sampled_from(EVERYDAY), st.sampled_from(HOSTILE)
joints = st.sampled_from(["; ", " && ", " || ", " | ", " & ", "\n", " |& "])


def test_every_program_is_judged_without_any_words():
    lines = [*programs.PROGRAMS, *EVERYDAY, *HOSTILE]
    names = sorted({line.split()[0] for line in lines})
    assert {"install", "rm", "sudo", "find", "git"} <= set(names)
    assert {type(understood(name)) for name in names} == {CommandAnalysis}


@given(TEXT)
def test_judging_never_raises(text):
    assert isinstance(understood(text), CommandAnalysis)


@given(TEXT, st.sampled_from(WRAPPERS + SEPARATORS))
def test_judging_never_raises_around_anything(text, around):
    assert isinstance(understood(around.replace("{}", text)), CommandAnalysis)


@given(everyday, joints, hostile)
def test_a_hostile_command_is_seen_on_either_side(line, joint, bad):
    if bad == "cd nowhere || cat ../x" or line.startswith("cd") or "cd" in bad.split():
        return  # there the other side changes what it means
    assert verdict(line + joint + bad) in ("ask", "deny")
    assert verdict(bad + joint + line) in ("ask", "deny")


@given(everyday, st.sampled_from(WRAPPERS))
def test_a_wrapper_never_lowers_a_decision(line, wrapper):
    assert worse_or_same(wrapper.format(line), line)


@given(hostile, st.sampled_from(WRAPPERS))
def test_a_wrapper_never_lowers_a_decision_about_something_hostile(line, wrapper):
    assert verdict(wrapper.format(line)) in ("ask", "deny")


def worse_or_same(one, other):
    return ORDER.index(decided(one).verdict) <= ORDER.index(decided(other).verdict)


@given(everyday, st.sampled_from(["$X", "`id`", "$(id)", "> out", "; ./x", "| tee out", "<(id)"]))
def test_what_is_added_to_an_everyday_line_is_seen(line, more):
    assert verdict(f"{line} {more}") in ("ask", "deny")


@given(st.lists(st.text(max_size=12).filter(lambda word: "\0" not in word), min_size=1, max_size=6))
def test_the_canonical_text_of_a_command_is_that_command(words):
    script = parse(join_quoted(words))
    if not (script.opaque or script.over_limit) and all(map(str.isprintable, words)):
        assert [one.argv for one in script.commands] == [tuple(words)] or "=" in words[0]


@given(
    st.lists(st.sampled_from(["-l", "-la", "-n", "-n5", "--lines=5", "--lines", "x", "--", "-"]))
)
def test_no_word_is_lost_when_words_are_sorted(words):
    given_words = parse_arguments([Arg(word) for word in words], flag_table("-l -a -n= --lines="))
    if given_words.unknown_flag:
        return
    counted = len(given_words.operands) + ("--" in words)
    assert counted <= len(words)
    told = [flag.name for flag in given_words.flags]
    assert set(told) <= {"-l", "-a", "-n", "--lines"}


@given(st.text(max_size=40))
def test_small_programs_are_read_to_the_end(text):
    assert checks.sed_only_prints(text) in (True, False)
    assert checks.awk_only_prints(text) in (True, False)
