"""sed and awk are the referees: a script that is said to only print, run for real, only prints."""

import random
import shutil
import subprocess

import pytest

from bridle.command_analysis import checks
from rig import seeds

SCRIPTS_OF_A_SEED = 60
SED_PIECES = [
    "p",
    "d",
    "q",
    "=",
    "n",
    "s/a/b/",
    "s/a/b/g",
    "s/a/b/p",
    "s/a/touch out/e",
    "s/a/b/w out",
    "w out",
    "e touch out",
    "1e touch out",
    "y/abc/xyz/",
    "s/[/]/x/",
    "s/[^/]*/x/",
    "s,a,b,w out",
    "r in",
    "W out",
    "1",
    "1,2",
    "$",
    "/a/",
    "/a/,/b/",
    "!",
    "{",
    "}",
    ";",
    "\n",
    " ",
    "w",
    "e",
    "/",
    "[",
    "]",
    "\\",
    "out",
    "a x",
    "i\\",
    "c\\\nx",
    "b",
    ":x",
    "t",
    "s/a/b/;w out",
    "\\,a,p",
    "s/\\(a\\)/\\1/",
    "#n",
    "I",
    "M",
    "g",
    "&",
    "s/[]/]/x/",
    "s/[^]/w out]/x/",
    "s/a[/w out/]b/c/",
    "l",
    "0~2",
    "F",
    "z",
    "x",
    "G",
    "h",
    "s|a|e|",
    "}w out",
]
AWK_PIECES = [
    "{print}",
    "{print $1}",
    "print",
    "{",
    "}",
    "(",
    ")",
    '"out"',
    ">",
    ">>",
    "|",
    "/a/",
    "/",
    '"',
    "\\",
    "NR>1",
    "NR==1",
    "system",
    '("touch out")',
    '"touch out"',
    "getline",
    "BEGIN",
    "END",
    "1",
    ";",
    "\n",
    " ",
    "a",
    "$0",
    "printf",
    "~",
    "!",
    "[",
    "]",
    '/"/',
    '"/"',
    "a/b",
    "x=1",
    ",",
    "||",
    "&&",
    '{print > "out"}',
    '{print | "touch out"}',
    'BEGIN{system("touch out")}',
    "/[/]/",
    '/[/"]/',
    "if",
    "else",
    "?",
    ":",
    "in",
]


def scripts(pieces, seed):
    chance = random.Random(seed)
    for _ in range(SCRIPTS_OF_A_SEED):
        yield "".join(chance.choices(pieces, k=chance.randint(1, 7)))


def run_for_real(argv, folder):
    """Run it where a file `in` is; what lies there afterwards."""
    (folder / "in").write_text("a/b c\nb a\n/a]b[\n")
    subprocess.run(
        argv, cwd=folder, capture_output=True, timeout=240, stdin=subprocess.DEVNULL, check=False
    )
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.skipif(not shutil.which("sed"), reason="there is no sed")
@pytest.mark.parametrize("seed", seeds(80))
def test_a_sed_script_that_only_prints_writes_nothing(seed, tmp_path):
    for script in scripts(SED_PIECES, seed):
        if checks.sed_only_prints(script):
            assert run_for_real(["sed", "-n", "--", script, "in"], tmp_path) == ["in"], script


@pytest.mark.skipif(not shutil.which("awk"), reason="there is no awk")
@pytest.mark.parametrize("seed", seeds(80))
def test_an_awk_program_that_only_prints_writes_nothing(seed, tmp_path):
    for script in scripts(AWK_PIECES, seed):
        if checks.awk_only_prints(script):
            assert run_for_real(["awk", "--", script, "in"], tmp_path) == ["in"], script


@pytest.mark.parametrize(
    "script",
    [
        "p",
        "5p",
        "1,20p",
        "$p",
        "/a/p",
        "/a/,/b/p",
        "s/a/b/",
        "s/a/b/gp",
        "s|a|b|",
        "1d;$d",
        "5q",
        "$=",
        "/a/!d",
        "/^$/d",
        "s/[0-9]*$//",
        "s/\\(a\\)/\\1/p",
        "y/ab/cd/",
        "/a/{p;q}",
        "1~2p",
        "2,+3p",
        "/a/I p",
        ":a;N;$!ba;s/\\n/ /g",
        "1!G;h;$!d",
        "s/[^,]*,//",
        "1i text",
        "\\,a,p",
    ],
)
def test_everyday_sed_scripts_only_print(script):
    assert checks.sed_only_prints(script)


@pytest.mark.parametrize(
    "script",
    [
        "e",
        "1e id",
        "w out",
        "/a/w out",
        "s/a/b/e",
        "s/a/b/w out",
        "s/a/b/we",
        "r /etc/passwd",
        "R x",
        "W x",
        "s/a/b",
        "s/a/b/;e id",
        "p;w x",
        "}",
        "{p",
        "i\\\nx",
        "s/[/]/x/w out",
        "s a b e",
        "1,2w x",
        "p\nw x",
        "s/x/y/gw x",
        "\\,a,w x",
        "v",
        "a\\",
        "L",
        "s/a/b/M;w x",
        "#n\nw x",
        "p w x",
        "1!w x",
        "$!{w x\n}",
        "s/[^]/]/w x/",
        "x" * 5000,
    ],
)
def test_sed_scripts_that_may_do_more_are_not_trusted(script):
    assert not checks.sed_only_prints(script)


@pytest.mark.parametrize(
    "program",
    [
        "{print $1}",
        "{print $1, $NF}",
        "NR==1",
        "NR>=2 && NR<=5",
        "/a/",
        "/a|b/",
        '/"a"/{print $2}',
        "{print $1 / 2}",
        "{x = length / 2; print x}",
        "!/x/",
        "$1 ~ /a/",
        'BEGIN{FS=","}{print $2}',
        "{s+=$1} END {print s/NR}",
        "{if ($1 > 2) print}",
        "length > 80",
        "!seen[$0]++",
        '{printf "%s\\n", $1}',
        '{gsub(/a/, "b"); print}',
        "{print ($1 > 2)}",
        "END{for (k in a) print k, a[k]}",
    ],
)
def test_everyday_awk_programs_only_print(program):
    assert checks.awk_only_prints(program)


@pytest.mark.parametrize(
    "program",
    [
        'BEGIN{system("id")}',
        '{print > "x"}',
        '{print >> "x"}',
        '{print | "sh"}',
        '"id" | getline',
        "getline < x",
        "{print > $1}",
        "@load x",
        "BEGIN{ARGV[1]=x}",
        '/"/{print > "x"} /"/',
        "{print (1) > x}",
        "#\n{print}",
        '{close("x")}',
        '{"id"|getline x}',
        "/a|b/{print $2}",
        '/[[:alpha:]/"]/ {print "touch p" | "sh"} /"/',
        '/[/"]/ {print > x} /"/',
        "/[[:alpha:]/]/ {if (1 > 0) print}",
        "/[]/]/ {if (1 > 0) print}",
        '{if (0) exit /"/; print > x; if (0) exit /"/}',
        '{x = length /"/; print > x; x = length /"/}',
        "BEGIN{for (i = 0; i < 1; print 1 > x) i++}",
        '{if ($1 >> "x") print}',
        "BEGIN{ENVIRON;SYMTAB[x]=1}",
        "x" * 5000,
    ],
)
def test_awk_programs_that_may_do_more_are_not_trusted(program):
    assert not checks.awk_only_prints(program)
