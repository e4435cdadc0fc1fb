"""What stands inside a command, how words are sorted, and in which folders a line may run."""

import pytest
from imagined import Imagined

from bridle.command_analysis.analysis import UNKNOWN, WorkingFolders
from bridle.command_analysis.argv import (
    Arg,
    Arguments,
    Flag,
    flag_table,
    operand_kinds,
    parse_arguments,
)
from bridle.command_analysis.parser import parse
from bridle.command_analysis.variables import expand_braces, likely_value, value_if_empty
from bridle.command_analysis.wrappers import WRAPPERS, InnerCommands, unwrap


def args(text):
    return [Arg(word) for word in text.split()]


def inner(line):
    """The commands that a line runs inside, as text."""
    name, *rest = line.split()
    found = unwrap(name, [Arg(word) for word in rest])
    return None if found is None else [" ".join(a.text for a in words) for words in found.commands]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("sudo ls -l", ["ls -l"]),
        ("sudo -u root -n ls", ["ls"]),
        ("sudo A=b ls", ["ls"]),
        ("env ls", ["ls"]),
        ("env -i -u X A=b C=d ls -l", ["ls -l"]),
        ("env", None),
        ("env A=b", None),
        ("nice -n 5 ls", ["ls"]),
        ("nice -n5 ls", ["ls"]),
        ("nice -5 ls", ["ls"]),
        ("timeout 5 ls", ["ls"]),
        ("timeout -k 1 --signal=KILL 5 ls -k", ["ls -k"]),
        ("timeout 5", None),
        ("stdbuf -o L ls", ["ls"]),
        ("command -v ls", None),
        ("command -p ls", ["ls"]),
        ("exec -a x ls", ["ls"]),
        ("xargs -0 -n 1 rm -f", ["rm -f"]),
        ("xargs", None),
        ("docker run --rm -v a:b image ls -l", ["ls -l"]),
        ("docker ps", None),
        ("docker exec -it box ls", ["ls"]),
        ("uv run --frozen pytest -q", ["pytest -q"]),
        ("uv sync", None),
        ("bundle exec rspec", ["rspec"]),
        ("chroot /x ls", ["ls"]),
        ("sudo --strange x ls", ["x ls", "ls"]),
        ("find . -name x", None),
        ("find . -name x -exec rm {} ;", ["rm ./x"]),
        ("find a b -exec rm -f {} +", ["rm -f a", "rm -f b"]),
        ("find . -name *.o -delete", ["rm -r ./{}.o"]),
        ("fd x -x rm", ["rm"]),
        ("ls -l", None),
    ],
)
def test_what_a_wrapper_runs(line, found):
    assert inner(line) == found


def test_text_for_a_shell_is_text():
    ls = Arg("ls -l")
    assert unwrap("bash", [Arg("-c"), ls]) == InnerCommands(texts=(ls,))
    assert unwrap("bash", [Arg("-euo"), Arg("pipefail"), Arg("-c"), ls]) == InnerCommands(
        texts=(ls,)
    )
    assert unwrap("sh", [Arg("-lc"), ls, Arg("x")]) == InnerCommands(texts=(ls,))
    assert unwrap("bash", [Arg("run.sh")]) is None
    for name, flag in (("zsh", "-c"), ("bash", "-ic"), ("fish", "-c")):
        found = unwrap(name, [Arg(flag), ls])
        assert (found.texts, found.is_complete, bool(found.opaque)) == ((ls,), False, True)
    odd = unwrap("sh", [Arg("-c"), Arg("ls &> x")])
    assert odd.opaque == "sh may not read this as bash does"


@pytest.mark.parametrize("name", ["eval", "watch"])
def test_words_that_are_joined_are_read_once_more(name):
    assert unwrap(name, args("rm -rf x")).texts == (Arg("rm -rf x"),)
    globbed = [Arg("ls"), Arg("a;id", True, "*"), Arg("b", True, "*")]
    assert unwrap(name, globbed).texts == (Arg("ls *", False),)


def test_another_machine_is_elsewhere():
    for line in ("ssh -p 22 host ls -l", "kubectl exec -n x pod -- ls", "docker run image ls"):
        name, *rest = line.split()
        found = unwrap(name, [Arg(word) for word in rest])
        assert (found.is_remote, found.only_forbids, found.does) == (True, True, "changes")


def test_who_runs_as_another_user_always_asks():
    users = ("sudo", "doas", "pkexec", "runuser", "su", "setpriv")
    assert {WRAPPERS[name].reason for name in users} == {"runs as another user"}
    assert {WRAPPERS[name].does for name in users} == {"changes"}


TABLE = flag_table("-l -a -n= -c? --lines= --color? --arg== -f=read -#")


@pytest.mark.parametrize(
    ("line", "flags", "operands", "strange"),
    [
        ("-la x", ["-l", "-a"], ["x"], ""),
        ("-n5 x", [("-n", "5")], ["x"], ""),
        ("-n 5 x", [("-n", "5")], ["x"], ""),
        ("-ln5", ["-l", ("-n", "5")], [], ""),
        ("--lines=5 --lines 6", [("--lines", "5"), ("--lines", "6")], [], ""),
        ("--color --color=auto", ["--color", ("--color", "auto")], [], ""),
        ("--arg a b c", [("--arg", "b")], ["c"], ""),
        ("-5 x", [], ["x"], ""),
        ("x -l -- -a", ["-l"], ["x", "-a"], ""),
        ("- x", [], ["-", "x"], ""),
        ("--line=5", [], [], "--line=5"),
        ("--color= -z", [("--color", "")], [], "-z"),
        ("-lz", ["-l"], [], "-lz"),
        ("-n", [], [], "-n"),
        ("--lines", [], [], "--lines"),
        ("-a=5", ["-a"], [], "-a=5"),
    ],
)
def test_words_are_sorted_as_the_program_would(line, flags, operands, strange):
    pairs = [(flag, None) if isinstance(flag, str) else flag for flag in flags]
    late = line.startswith("x ")
    wanted = [
        Flag(name, TABLE[name], None if value is None else Arg(value), late)
        for name, value in pairs
    ]
    assert parse_arguments(args(line), TABLE) == Arguments(
        wanted, args(" ".join(operands)), strange
    )


def test_operands_are_read_off_the_entry():
    assert operand_kinds("text read*") == (("text",), "read", ())
    assert operand_kinds("read* write") == ((), "read", ("write",))
    assert operand_kinds("") == ((), "", ())


def whereabouts(line):
    """The folders in which each command of a line may run."""
    found = WorkingFolders(Imagined(), ("/ws",))
    seen = []
    for simple in parse(line).commands:
        seen.append(found.folders_for(simple))
        if simple.argv[0] == "cd":
            if UNKNOWN in seen[-1]:
                found.change(simple, None)
                continue
            to = [found.after_cd(folder, simple.argv[1]) for folder in seen[-1]]
            found.change(simple, tuple(dict.fromkeys(sum(to, ()))))
        elif simple.argv[0] == "popd":
            found.change(simple, None)
    return seen


WS, A, B = ("/ws",), ("/ws/a",), ("/ws/b",)


@pytest.mark.parametrize(
    ("line", "folders"),
    [
        ("ls; ls", [WS, WS]),
        ("cd a && ls", [WS, A]),
        ("cd a; ls", [WS, (*A, *WS)]),
        ("cd a || ls", [WS, WS]),
        ("cd a && ls; ls", [WS, A, (*A, *WS)]),
        ("cd a && ls || ls", [WS, A, (*A, *WS)]),
        ("cd a && ls | ls && ls", [WS, A, A, A]),
        ("(cd a && ls) && ls", [WS, A, WS]),
        ("(cd a; ls); ls", [WS, (*A, *WS), WS]),
        ("cd a | ls; ls", [WS, WS, WS]),
        ("cd a & ls", [WS, WS]),
        ("cd a && cd ../b && ls", [WS, A, B]),
        ("popd && ls", [WS, (UNKNOWN,)]),
        ("cd a; cd b; cd c; cd d; ls", [WS, (*A, *WS)]),
    ],
)
def test_a_cd_is_followed(line, folders):
    assert whereabouts(line)[: len(folders)] == folders


def test_a_line_with_too_many_folders_is_not_followed():
    assert whereabouts("cd a; cd b; cd c; cd d; ls")[-1] == (UNKNOWN,)


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        ('"$HOME"/x', "/home/me/x"),
        ("${HOME}", "/home/me"),
        ("${HOME%/}/x", "/home/me/x"),
        ("$PWD/x", "/ws/src/x"),
        ("$(pwd)", "/ws/src"),
        ("`pwd`/..", "/ws/src/.."),
        ("$(git rev-parse --show-toplevel)", "/ws"),
        ("$X/x", ""),
        ("$HOMELY", ""),
    ],
)
def test_what_a_word_most_likely_stands_for(spelling, text):
    assert likely_value(spelling, "/home/me", "/ws/src", "/ws") == text


def test_what_is_left_when_variables_are_empty():
    assert value_if_empty('"$X/"*', "/home/me", "/ws", "/ws") == "/*"
    assert value_if_empty("${X}/$(y)/z", "/home/me", "/ws", "/ws") == "//z"


def test_braces_are_spread_within_bounds():
    assert expand_braces("a{b,c}d") == ["abd", "acd"]
    assert expand_braces("{a,b}{c,d}") == ["ac", "ad", "bc", "bd"]
    assert expand_braces("${x,y}") == ["${x,y}"]
    assert len(expand_braces("{a,b}" * 50)) <= 16
