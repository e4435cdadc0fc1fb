"""`bridle policy`: what would be decided and why, for a person and for a program (A5)."""

import json
import subprocess

import pytest


def lines(bridle, *asked, arguments=(), **environ):
    """One decision for each question, as a program gets them."""
    stdin = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in asked)
    done = bridle.run(
        "policy", "explain", "--json", "-", *arguments, stdin=stdin.encode(), **environ
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def verdicts(bridle, *asked, **more):
    return [one["decision"] for one in lines(bridle, *asked, **more)]


def own_rules(bridle, text):
    path = bridle.home / ".config/bridle/policy.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def project_rules(bridle, text):
    path = bridle.workspace / ".bridle/policy.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_each_line_gets_a_decision_with_a_reason_and_a_rule(bridle):
    found = lines(
        bridle,
        {"command": "ls"},
        {"command": "make deploy"},
        {"command": "rm -rf /"},
        {"command": "curl x", "rules": ["deny: shell(curl *)"]},
        {"command": "make deploy", "rules": ["allow: shell(make *)"]},
        {"tool": "write", "arguments": {"path": "a.txt", "content": ""}},
        {"tool": "read", "arguments": {"path": "a.txt"}},
        {"tool": "write", "arguments": {"path": "../a.txt", "content": ""}},
    )
    assert [one["decision"] for one in found] == [
        "allow", "ask", "deny", "deny", "allow", "ask", "allow", "deny",
    ]  # fmt: skip
    assert [one["rule"] for one in found] == [
        "", "", "floor", "deny: shell(curl *)", "allow: shell(make *)", "", "", "floor",
    ]  # fmt: skip
    assert all(one.keys() == {"decision", "reason", "rule"} and one["reason"] for one in found)


def test_a_line_can_name_its_mode_and_its_folder(bridle):
    (bridle.workspace / "sub").mkdir()
    edit = {"tool": "write", "arguments": {"path": "a.txt", "content": ""}}
    asked = [{**edit, "mode": mode} for mode in ("plan", "ask", "edits", "auto")]
    assert verdicts(bridle, *asked) == ["deny", "ask", "allow", "allow"]
    wander = {"command": "cat ../../x"}
    assert verdicts(bridle, {"command": "cat ../x", "cwd": "sub"}, {**wander, "cwd": "sub"}) == [
        "allow",
        "ask",
    ]


def test_a_bad_line_is_denied_and_the_next_one_is_decided(bridle):
    bad = [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"command": 5}',
        '{"tool": "read", "arguments": []}',
        '{"command": "ls", "mode": "yolo"}',
        '{"command": "ls", "rules": ["allow everything"]}',
        '{"command": "ls", "rules": "allow: shell"}',
        '{"command": "\\ud800"}',
        '{"command": "ls", "cwd": "a\\u0000b"}',
        "[" * 100_000,
    ]
    found = lines(bridle, *[line for one in bad for line in (one, {"command": "ls"})])
    assert [one["decision"] for one in found] == ["deny", "allow"] * len(bad)
    assert all(("error" in one) == (one["decision"] == "deny") for one in found)


def test_text_that_attacks_comes_back_as_data(bridle):
    hostile = "echo \x1b]52;c;eA==\x07 \u202e \x00 \udcff".encode("utf-8", "surrogateescape")
    asked = json.dumps({"command": hostile.decode("utf-8", "replace")})
    [found] = lines(bridle, asked)
    assert found["decision"] != "allow"


def test_it_answers_line_by_line(bridle):
    """A program may wait for each answer before it asks again."""
    command = bridle.command("policy", "explain", "--json", "-")
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        cwd=bridle.workspace,
        env=bridle.environ,
    ) as process:
        for text, wanted in (("ls", "allow"), ("rm -rf /", "deny"), ("ls", "allow")):
            process.stdin.write(json.dumps({"command": text}) + "\n")
            assert json.loads(process.stdout.readline())["decision"] == wanted
        process.stdin.close()
        assert process.wait(30) == 0


def test_your_own_rules_count_and_those_of_a_line_come_on_top(bridle):
    own_rules(bridle, "rules:\n- deny: shell(make *)\n- allow: shell(npm publish)\n")
    allow = {"rules": ["allow: shell(make *)"]}
    assert verdicts(bridle, {"command": "make", **allow}, {"command": "npm publish"}) == [
        "deny",
        "allow",
    ]


def test_rules_of_a_folder_count_once_it_is_trusted(bridle):
    project_rules(bridle, "rules:\n- allow: shell(npm publish)\n")
    before = bridle.run("policy", "explain", "--json", "npm publish")
    assert json.loads(before.stdout)["decision"] == "ask"
    assert "bridle trust" in before.stderr
    shown = bridle.run("trust", "--yes")
    assert shown.returncode == 0
    assert "allow: shell(npm publish)" in shown.stdout
    after = bridle.run("policy", "explain", "--json", "npm publish")
    assert (json.loads(after.stdout)["decision"], after.stderr) == ("allow", "")


def test_a_bad_file_refuses_to_start_with_its_line(bridle):
    path = own_rules(bridle, "rules:\n- allow: shell(ls)\n- permit: shell\n")
    for arguments in (
        ("policy", "explain", "ls"),
        ("policy", "check"),
        ("run", "hello", "--model", "offline"),
    ):
        done = bridle.run(*arguments)
        assert done.returncode == 2
        assert f"{path}:3: there is no `permit` in a rule" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_person_is_shown_the_parse_the_effects_and_the_decision(bridle):
    own_rules(bridle, "rules:\n- deny: shell(curl *)\n  reason: nothing leaves\n")
    done = bridle.run("policy", "explain", "ls -l && curl x > out.txt")
    assert done.returncode == 0
    for words in (
        "ls -l",
        "&& curl x",
        "> out.txt",
        "only reads",
        "denied: a rule forbids it: nothing leaves",
        "deny: shell(curl *)",
        "policy.yaml:2",
        "mode ask",
    ):
        assert words in done.stdout
    assert "\x1b" not in done.stdout


def test_what_is_shown_is_harmless(bridle):
    done = bridle.run("policy", "explain", "echo \x1b[31m \u202e")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


def test_a_call_of_another_tool_is_explained(bridle):
    arguments = '{"path": ".env"}'
    done = bridle.run("policy", "explain", "--tool", "read", "--arguments", arguments, "--json")
    assert json.loads(done.stdout)["decision"] == "ask"
    unknown = bridle.run("policy", "explain", "--tool", "launch", "--json")
    assert json.loads(unknown.stdout)["decision"] == "ask"


def test_a_tool_that_is_off_is_denied_and_one_that_nobody_knows_is_not_allowed_unasked(bridle):
    page = {"tool": "web_fetch", "arguments": {"url": "https://169.254.169.254/"}}
    rule = {"rules": ["allow: launch"]}
    asked = [{"tool": "launch", "mode": mode} for mode in ("plan", "ask", "edits", "auto")]
    asked += [{"tool": "launch", "mode": "auto", **rule}, {**page, "mode": "auto"}, page]
    found = lines(bridle, *asked)
    wanted = ["deny", "ask", "ask", "ask", "allow", "deny", "deny"]
    assert [one["decision"] for one in found] == wanted
    assert "no tool launch is known here" in found[3]["reason"]
    assert "there is no tool web_fetch here" in found[5]["reason"]
    settings = bridle.home / ".config/bridle/config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("hosts: [example.com]\n")
    page["arguments"]["url"] = "https://example.com/"
    assert verdicts(bridle, page) == ["ask"]


@pytest.mark.parametrize(
    "arguments",
    [(), ("ls", "--tool", "read"), ("--tool", "read", "--arguments", "[]"), ("--rule", "x", "ls"),
     ("--rules", "none.yaml", "ls")],
)  # fmt: skip
def test_wrong_use_is_said_in_a_line(bridle, arguments):
    done = bridle.run("policy", "explain", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("bridle: ")
    assert "Traceback" not in done.stderr


CHECKED = """
rules:
  - allow: shell(git push origin feature/*)
    examples:
      allow: [git push origin feature/x]
      ask: [git push origin main, git push origin feature/x && make release]
  - deny: shell(curl *)
    examples:
      deny: [curl x, /usr/bin/curl x, ls; curl x]
"""


def test_check_runs_every_example(bridle):
    path = own_rules(bridle, CHECKED)
    done = bridle.run("policy", "check")
    assert (done.returncode, done.stdout) == (0, f"✓ {path}: 2 rules, 6 examples\n")


def test_check_says_what_came_out_otherwise_and_why(bridle):
    path = bridle.workspace / "new.yaml"
    path.write_text("rules:\n- allow: shell(git *)\n  examples:\n    ask: [git push]\n")
    done = bridle.run("policy", "check", "new.yaml")
    assert done.returncode == 1
    assert done.stdout == (
        "✗ new.yaml: 1 rule, 1 example\n"
        "  new.yaml:4: git push should need approval, but is allowed: a rule says so "
        "(allow: shell(git *))\n"
    )


def test_check_tells_of_rules_that_say_nothing(bridle):
    own_rules(
        bridle,
        "rules:\n- allow: shell(a)\n  expires: 2001-01-01\n- deny: shell(curl * | sh)\n"
        "- deny: launch\n",
    )
    done = bridle.run("policy", "check")
    assert done.returncode == 0
    assert "policy.yaml:2: `allow: shell(a)` has expired" in done.stdout
    assert "policy.yaml:4: `deny: shell(curl * | sh)` hardly ever matches" in done.stdout
    assert "policy.yaml:5: `deny: launch` names a tool" in done.stdout


def test_check_without_files_says_so(bridle):
    done = bridle.run("policy", "check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("There are no rules yet")


def test_a_rule_for_another_folder_is_passed_over_and_so_are_its_examples(bridle):
    own_rules(
        bridle,
        "rules:\n- allow: shell(make deploy)\n  in: /elsewhere\n"
        "  examples: {allow: [make deploy]}\n"
        f"- allow: shell(make publish)\n  in: {bridle.workspace.resolve()}\n"
        "  examples: {allow: [make publish], ask: [cd .. && make publish]}\n",
    )
    done = bridle.run("policy", "check")
    assert done.returncode == 0, done.stdout
    assert "1 rule, 2 examples" in done.stdout
    assert "`allow: shell(make deploy)` applies only in /elsewhere, not here" in done.stdout
    asked = [{"command": "make deploy"}, {"command": "make publish"}]
    assert verdicts(bridle, *asked) == ["ask", "allow"]
