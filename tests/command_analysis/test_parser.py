"""Reading a command line: what is understood, what is opaque, and what is seen all the same."""

import pytest

from bridle.command_analysis.parser import (
    CHANGES_HOME,
    CHANGES_PARSING,
    INVISIBLE,
    READINGS_DIFFER,
    parse,
)
from bridle.command_analysis.syntax import Redirect, Script, SimpleCommand, Word


def argv_of(line):
    """The words of every command of a line that is understood."""
    script = parse(line)
    assert (script.opaque, script.over_limit) == ("", "")
    return [list(command.argv) for command in script.commands]


def seen(line):
    """The words of every command of a line that is not understood."""
    script = parse(line)
    assert script.opaque
    return [" ".join(command.argv) for command in script.commands]


UNDERSTOOD = {
    "": [],
    "  \n\t# nothing but a word to the reader": [],
    "ls": [["ls"]],
    "ls -la  src\t tests": [["ls", "-la", "src", "tests"]],
    "git log --format='%h %s' -3": [["git", "log", "--format=%h %s", "-3"]],
    r"r\m -rf x": [["rm", "-rf", "x"]],
    '"r"m x': [["rm", "x"]],
    r"$'\x72\155' x": [["rm", "x"]],
    r"echo $'a\tb\\\'\"\e\cA\u41'": [["echo", "a\tb\\'\"\x1b\x01A"]],
    r'echo "a \"b\" \\ \n $" $': [["echo", 'a "b" \\ \\n $', "$"]],
    "echo 'it'\\''s'": [["echo", "it's"]],
    "grep foo$ a#b #c": [["grep", "foo$", "a#b"]],
    "a 2>&1 b": [["a", "b"]],
    "a2>x": [["a2"]],
    "make \\\n  -j4 \\\n  all": [["make", "-j4", "all"]],
    "a; b\nc && d || e | f & g": [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]],
    "(a; b) && { c; d; }": [["a"], ["b"], ["c"], ["d"]],
    "[ -f x ] && cat x": [["[", "-f", "x", "]"], ["cat", "x"]],
    "export A=b": [["export", "A=b"]],
    "find . -name '*.py' -exec wc {} +": [["find", ".", "-name", "*.py", "-exec", "wc", "{}", "+"]],
    "git show HEAD~2 stash@{0}": [["git", "show", "HEAD~2", "stash@{0}"]],
    "echo if then done": [["echo", "if", "then", "done"]],
    "set -euo pipefail; make": [["set", "-euo", "pipefail"], ["make"]],
    "echo héllo 'wörld'": [["echo", "héllo", "wörld"]],
    "'' a": [["", "a"]],
}


@pytest.mark.parametrize("line", UNDERSTOOD)
def test_a_plain_line_is_read_word_for_word(line):
    assert argv_of(line) == UNDERSTOOD[line]


EXPANDS = {
    "echo $x": "variable",
    'echo "a $x"': "variable",
    "echo ${x@P}": "expansion, ${",
    'echo "${x:-$(id)}"': "expansion, ${",
    "cat a$IFS.b": "variable",
    "echo $(id)": "substitution, $(",
    "echo `id`": "substitution, `",
    'echo "`id`"': "substitution, `",
    "diff <(a) b": "substitution, <(",
    "tee >(a)": "substitution, >(",
    "echo $((1+1))": "arithmetic",
    "echo $[1+1]": "arithmetic",
    "((x=1))": "arithmetic",
    'echo $"hi"': "language",
    "echo {a,b}": "braces",
    "echo {1..3}": "braces",
    "echo ~root": "home folder",
    "echo ~+": "home folder",
    "echo a=~/b": "after =",
    "A=~ b": "after =",
    "echo @(a|b)": "bracket",
    "ls [[:alpha:]]": "pattern",
    'ls "*"*': "pattern",
    r"echo $'\xff'": "escape",
    r"echo $'\0'": "escape",
    r"echo $'\u00e9'": "escape",
    "for i in a b; do rm x; done": "grammar, for",
    "if a; then b; fi": "grammar, if",
    "! a": "grammar, !",
    "time a": "grammar, time",
    "coproc a": "grammar, coproc",
    "[[ -f x ]]": "grammar, [[",
    "select x in a; do b; done": "grammar, select",
    "f() { a; }": "function",
    "function f { a; }": "grammar, function",
    "a=(1 2)": "bracket",
    "a[0]=1": "assignment to a list",
    "a+=1 b": "assignment to a list",
    "echo 'open": "not closed",
    'echo "open': "not closed",
    "echo $'open": "not closed",
    "a\\\nb": "backslash",
    "a;; b": "not a complete command",
    "a &; b": "not a complete command",
    "; a": "not a complete command",
    "a |": "not a complete command",
    "( )": "not a complete command",
    "a )": "not a complete command",
    "{ a; } b": "not a complete command",
    "a >": "not a complete command",
    "cat > *.txt": "redirects to a pattern",
    "a {x}>y": "has a name",
    "a 10>x": "more than one digit",
    "a <<E\n$x\nE": "would expand",
    "a <<E\nb": "does not end",
}


@pytest.mark.parametrize("line", EXPANDS)
def test_what_is_not_certain_is_opaque_and_says_why(line):
    script = parse(line)
    assert EXPANDS[line] in script.opaque


STRANGENESS = ("\r", "\0", "\x1b", "\x7f", "\u00a0", "\u2028", "\u200b", "\u202e", "\ud800", "\x85")
STRANGENESS += ("\u2800", "\u3164", "\u115f", "\uffa0")  # printable, and nothing is seen


@pytest.mark.parametrize("character", STRANGENESS)
def test_a_character_that_cannot_be_seen_makes_a_line_opaque(character):
    assert parse(f"ls a{character}; rm b").opaque == INVISIBLE
    assert parse(f"ls 'a{character}'; rm b").opaque == INVISIBLE


SEEN = {
    "echo $(rm -rf /)": "rm -rf /",
    "echo `rm -rf /`": "rm -rf /",
    'echo "${x:-$(rm -rf /)}"': "rm -rf /",
    "cat <(rm -rf /)": "rm -rf /",
    "cat <<E\n$(rm -rf /)\nE": "rm -rf /",
    "for i in 1; do rm -rf /; done": "rm -rf /",
    "while a; do rm -rf /; done": "rm -rf /",
    "if a; then b; else rm -rf /; fi": "rm -rf /",
    "case x in a) rm -rf /;; esac": "rm -rf /",
    "f() { rm -rf /; }; f": "rm -rf /",
    "! rm -rf /": "rm -rf /",
    "time rm -rf /": "rm -rf /",
    "coproc rm -rf /": "rm -rf /",
    "[[ -n $(rm -rf /) ]]": "rm -rf /",
    "echo $(( $(rm -rf /) ))": "rm -rf /",
    "A=$(rm -rf /)": "rm -rf /",
    "a[$(rm -rf /)]=1": "rm -rf /",
    "export A=$(rm -rf /)": "rm -rf /",
    "echo $x; rm -rf /": "rm -rf /",
    "echo $x && r\\m -rf '/'": "rm -rf /",
    "rm >$x -rf /": "rm -rf /",
    "a; ) rm -rf /": "rm -rf /",
    "select i in a; do rm -rf /; done": "rm -rf /",
    "ls\r; rm -rf /": "rm -rf /",
}


@pytest.mark.parametrize("line", SEEN)
def test_a_command_is_seen_wherever_it_hides(line):
    assert SEEN[line] in seen(line)


def test_where_the_two_readings_differ_what_either_sees_is_kept():
    script = parse('echo "$ a"; rm -rf /')
    assert script.opaque == READINGS_DIFFER
    assert ("rm", "-rf", "/") in [command.argv for command in script.commands]


def test_a_word_that_is_not_known_is_as_it_is_spelled():
    found = parse('rm -rf "$HOME"/*').commands[0].words[-1]
    assert found == Word('"$HOME"/*', known=False)


def test_words_say_whether_they_glob_or_begin_with_a_home_folder():
    found = parse("ls *.py a? [ab]c '*' \\? ~ ~/x '~' a~ [").commands[0].words
    globs = [Word("*.py", globs=True), Word("a?", globs=True), Word("[ab]c", globs=True)]
    homes = [Word("~", tilde=True), Word("~/x", tilde=True), Word("~"), Word("a~"), Word("[")]
    assert list(found) == [Word("ls"), *globs, Word("*"), Word("?"), *homes]


REDIRECTS = {
    "a <b": Redirect("read", Word("b"), 0),
    "a >b": Redirect("write", Word("b"), 1),
    "a >|b": Redirect("write", Word("b"), 1),
    "a >>'b c'": Redirect("append", Word("b c"), 1),
    "a 2>b": Redirect("write", Word("b"), 2),
    "a 2>>~/b": Redirect("append", Word("~/b", tilde=True), 2),
    "a &>b": Redirect("write", Word("b"), 1),
    "a &>>b": Redirect("append", Word("b"), 1),
    "a >&b": Redirect("write", Word("b"), 1),
    "a 2>&1": Redirect("copy", Word("1"), 2),
    "a <&3": Redirect("copy", Word("3"), 0),
    "a <<<'b c'": Redirect("text", Word("b c\n"), 0),
    "a <<E\nb c\nd\nE\n": Redirect("text", Word("b c\nd\n"), 0),
    "a <<'E'\n$x `y`\nE": Redirect("text", Word("$x `y`\n"), 0),
    "a <<-E\n\tb\n\tE\n": Redirect("text", Word("b\n"), 0),
}


@pytest.mark.parametrize("line", REDIRECTS)
def test_every_redirection_is_known_by_what_it_does(line):
    assert parse(line) == Script((SimpleCommand((Word("a"),), redirects=(REDIRECTS[line],)),))


def test_assignments_stand_before_the_words():
    words = (Word("make"), Word("C=3"))
    assert parse("A=1 B='x y' make C=3").commands == (
        SimpleCommand(words, (("A", "1"), ("B", "x y"))),
    )
    assert parse("A=").commands == (SimpleCommand((), (("A", ""),)),)


def test_the_redirections_of_a_group_are_a_command_without_words_before_it():
    write = (Redirect("write", Word("x")),)
    group = (SimpleCommand(redirects=write), SimpleCommand((Word("a"),), follows=";"))
    assert parse("{ a; } > x").commands == group


def test_each_command_says_how_it_follows_and_in_which_subshell_it_runs():
    found = parse("a; (b; (c)) | { d; e; } && f & g").commands
    told = [(one.argv[0], one.follows, one.scope, one.piped) for one in found]
    assert told == [
        ("a", "", (), False),
        ("b", ";", (5, 3, 1), False),
        ("c", ";", (5, 3, 1, 2), False),
        ("d", "|", (5, 4), False),
        ("e", ";", (5, 4), False),
        ("f", "&&", (5,), False),
        ("g", "&", (), False),
    ]
    assert [one.piped for one in parse("a | b").commands] == [True, True]


@pytest.mark.parametrize("line", ["alias ls=rm\nls", "shopt -s extglob; ls", "set -f; ls *"])
def test_what_changes_how_later_words_are_read_is_opaque(line):
    assert parse(line).opaque == CHANGES_PARSING


@pytest.mark.parametrize("line", ["HOME=/; rm ~/x", "export HOME=/; cat <~/x", "read HO'ME'; ls ~"])
def test_a_home_folder_that_may_change_is_opaque(line):
    assert parse(line).opaque == CHANGES_HOME
