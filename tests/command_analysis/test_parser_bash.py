"""Real bash is the judge: what we say that a line runs is what it runs, word for word, in order."""

import random

import pytest
from real_bash import NAMES, expected, populate, run_line, soup

from bridle.command_analysis.parser import parse
from rig import seeds

LINES_OF_A_SEED = 100
_BUILT_IN = frozenset(("", ":", ".", "[", "slurp" * 2))


def is_understood(script):
    return not (script.opaque or script.over_limit or any(one.opaque for one in script.commands))


def is_runnable(command):
    """Would the recorder see it? Not a built-in, nor a path, nor one whose redirection fails."""
    if command.words:
        name = command.words[0]
        if name.text in _BUILT_IN or name.tilde or "/" in name.text or name.text[0] == "%":
            return False
    return all(is_openable(redirect) for redirect in command.redirects)


def is_openable(redirect):
    target = redirect.target
    if redirect.kind == "text":
        return True
    if redirect.kind == "copy":
        return target.text in ("1", "2")
    if redirect.kind == "read":
        return target.text in NAMES
    return target.text not in ("", ".", "..") and "/" not in target.text and not target.tilde


def check(line, script, folder):
    """Run it so that every command runs, and compare. `&&` and `||` in one line leave some out."""
    populate(folder)
    follows = {one.follows for one in script.commands}
    globs = any(word.globs for one in script.commands for word in one.words)
    ran = run_line(line, folder, status=int("||" in follows), globs=not globs)
    wanted = expected(script)
    if "|" in follows or any(one.scope for one in script.commands):
        ran, wanted = sorted(ran), sorted(wanted)
    if "||" in follows and ("&&" in follows or not all(one.words for one in script.commands)):
        assert [one for one in ran if one not in wanted] == [], line
    else:
        assert ran == wanted, line


WRITTEN = (
    "a; b\nc && d",
    "a b\\ c 'd  e' \"f $ g\" $'h\\ti'",
    "a2>c b",
    "a 2>c b",
    "a 2 >c b",
    "a b>c d",
    "a \\2>c",
    "a '2'>c",
    "a 2&>c",
    "a 2>&1 >c",
    "a&>c b",
    "a&b",
    "a|b|&c",
    "a#b #c",
    "a;#b\nc",
    "a '#' \\# \"#\"",
    "(#a\nb)",
    "a \\\n b \\\n\\\n c",
    "a \\\n; b",
    "a &&\n\n b |\n c",
    "a { } {} {a} a{b}c }",
    "{ a; b; }; { c;\n}",
    "{ a } ; }",
    "{a b",
    "{(a)\n}",
    "a ! !b b! =c d= == a=b",
    "a if then else fi do done case esac in time function [[ ]] coproc",
    "'if' a; \\time b; \"!\" c; i''f d",
    "A=1 B='2 3' a b C=4",
    "A=1; B=2",
    "'A'=1 b; A\\=1 b",
    "1A=2 b",
    'a $ $; b$ "$" "a$" \'b$\'',
    'a "$ b" "$|" "$)" "a$/b"',
    "a ~ ~/b '~' \\~ a~ ~\n",
    "a --b=~ c",
    "a [ ] [b b] [ b ]",
    "a -[ ]- '[b]'",
    'a "\\$x \\` \\" \\\\ \\a \\\nb"',
    "a 'b\nc' \"d\ne\"",
    "slurp <<E\na b\n'c'\nE\nb",
    "slurp <<'E'\n$a `b` \\\nE\nb",
    "slurp <<-E\n\ta\n\t\tb\n\tE\nb",
    "slurp <<E; b\na\nE\nc",
    "slurp <<A <<B\n1\nA\n2\nB\nc",
    'slurp <<"E"F\na\nEF\n',
    "slurp <<<'a b'",
    "slurp <<E\nE",
    "(slurp <<E\na\nE\n) && b",
    "a <in >c 2>>c; b",
    ">c a b; <in b c",
    ">c",
    "(a; b) >c; { c; } 2>c",
    "((a); b)",
    "( (a); b)",
    "a $'\\x61\\141\\u0061\\U00000061\\cA\\e\\E\\?\\\"\\'' $'\\xg' $'\\q' $'\\8'",
    "a $'\\x616' $'\\1411' $'\\u00611'",
    "a é 'ü' \\ö \"ß\"",
    "a -- -c --norc",
    "--norc a",
    "-c b",
    "a\t\tb\t;\tc",
    "a & b & c &",
    "a || b || c",
    "a && b && (c && 1)",
    "a ; ",
    "a\n\n\n;b",
    "!a b",
    "a !",
    "a @(b",
    "a b(c)",
    "a %1 @ ^b c^ + , ,, ..",
    "2 3; 2>c 3",
    "2\\>c",
    "a 1>&2 2>c",
    "a >&c b",
    "a >&2 b",
    "a >& 2 b",
    "a <&0 b",
    "a>|c b",
    "a<>c b",
    "a \"b\"'c'd\\e$'f'",
    "a ''\"\"",
    "a $''",
    'a ""b',
    "a #b\\\nc",
    "a # b 'c\nb",
    "a $'b\\\nc'",
    "a >&² b",
    "a <<2>c\n2\n",
)


@pytest.mark.parametrize("line", WRITTEN)
def test_bash_runs_what_we_read(line, tmp_path):
    script = parse(line)
    if is_understood(script):
        check(line, script, tmp_path)


def test_most_of_the_lines_above_are_understood():
    understood = [line for line in WRITTEN if is_understood(parse(line))]
    assert len(understood) > 65


@pytest.mark.parametrize("seed", seeds(40))
def test_bash_runs_what_we_read_of_any_soup(seed, tmp_path):
    dice = random.Random(seed)
    checked = 0
    while checked < LINES_OF_A_SEED:
        line = soup(dice)
        script = parse(line)
        if is_understood(script) and script.commands and all(map(is_runnable, script.commands)):
            checked += 1
            folder = tmp_path / str(checked)
            folder.mkdir()
            check(line, script, folder)
