"""What a line would do: its acts, its reasons, its folders, and what rules make of it."""

import pytest
from deciding import decided, understood, verdict
from imagined import HOME, Imagined
from msgspec.structs import replace

from bridle.command_analysis.findings import CommandAnalysis
from bridle.policy import Act

LINK = Imagined(links={"out": "/etc", "deep": "/ws/src/lib"})


def shell(subject, does="reads", reason="", also=(), minor=False):
    return Act(("shell",), subject, does, reason, also, False, minor)


def path(kind, subject, does="reads", reason="", also=(), minor=True):
    return Act((kind,), subject, does, reason, also, True, minor)


def test_a_command_is_one_act_and_each_of_its_paths_a_minor_one():
    assert understood("cat README.md ./src/app.py") == CommandAnalysis(
        (
            shell("cat README.md ./src/app.py"),
            path("read", "README.md"),
            path("read", "src/app.py", also=("./src/app.py",)),
        ),
        cwd="/ws",
    )


def test_a_wrapper_is_an_act_beside_what_it_runs():
    assert understood("timeout 5 ls").acts == (
        shell("timeout 5 ls", minor=True),
        shell("ls"),
    )
    assert understood("sudo ls").acts[:2] == (
        shell("sudo ls", "changes", "runs as another user"),
        shell("ls"),
    )


def test_the_text_of_a_command_is_canonical():
    found = understood("gi't'  status   --short")
    assert found.acts[0] == shell("git status --short", also=("gi't'  status   --short",))
    assert understood("echo 'a b' \"c'd\"").acts[0].subject == "echo 'a b' 'c'\"'\"'d'"


def test_a_redirection_is_an_act_of_its_own():
    assert understood("ls > out.txt").acts[0] == path(
        "write", "out.txt", "edits", "writes out.txt", minor=False
    )
    assert verdict("ls > out.txt", mode="edits") == "allow"
    assert verdict("ls > out.txt", "allow: shell(ls *)") == "ask"
    assert verdict("ls > out.txt", "allow: shell(ls *)", "allow: write(*.txt)") == "allow"


@pytest.mark.parametrize(
    "line",
    ["ls 2>&1", "ls >/dev/null 2>&1", "cat < README.md", "ls 2>/dev/stderr", "cat <<'E'\nx\nE"],
)
def test_redirections_that_write_nothing_run(line):
    assert verdict(line) == "allow"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("rm -rf build", "deletes build and everything in it"),
        ("rm build/out.o", "deletes build/out.o"),
        ("mkdir a b", "writes a; writes b"),
        ("cat /etc/hosts", "reads /etc/hosts, outside the workspace"),
        ("cd /etc", "goes outside the workspace"),
        ("curl https://example.com/x", "goes out to example.com over the network"),
        ("dig a.example.com", "looks up a.example.com, which sends the name over the network"),
        ("git push", "sends commits over the network"),
        ("frobnicate", "frobnicate is not a known program"),
        ("ls --made-up", "ls --made-up is not known to be harmless"),
        ("git frob", "git frob is not known to be harmless"),
        ("./run.sh", "runs run.sh, a program of the workspace"),
        ("FOO=1 ls", "sets FOO, which can change what a program does"),
        ("sudo ls", "runs as another user"),
        ("pytest", "runs the workspace's own code"),
        (
            "cd src; pwd; cd ..",
            "goes outside the workspace if the cd before it fails: join them with &&",
        ),
        ("cd ..", "goes outside the workspace"),
        ("code .", "opens an editor"),
        ("openssl s_client -connect x:1", "goes out over the network"),
        ("openssl enc -in x", "openssl enc is not known to be harmless"),
        ("git apply data.csv", "changes files of the working tree"),
        ("source .venv/bin/activate && pytest", "runs the workspace's own code"),
        (". venv/bin/activate; python -m pytest", "runs the workspace's own code"),
    ],
)
def test_the_reason_is_for_a_person(line, reason):
    assert decided(line).reason == reason


@pytest.mark.parametrize(
    "line",
    [
        "node --check src/app.js",
        "openssl rand -hex 32",
        "openssl sha256 README.md",
        "git apply --check data.csv",
        "cd src && pwd && cd ..",
    ],
)
def test_what_only_looks_runs_unasked(line):
    assert verdict(line) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "node --check -r ./x src/app.js",
        "node --check /etc/x.js",
        "openssl rand -out .env 1",
        "git apply --check --apply data.csv",
        "source ~/x/bin/activate",
        "source ../x/bin/activate",
        "source src/activate && pytest",
        "source x/bin/activate more",
    ],
)
def test_what_only_resembles_it_is_asked_about(line):
    assert verdict(line) == "ask"


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("curl https://example.com", True),
        ("git push", True),
        ("git fetch origin", True),
        ("git clone https://example.com/x", True),
        ("git submodule update", True),
        ("gh pr list", True),
        ("pip install x", True),
        ("python3 -m pip install x", True),
        ("uv sync", True),
        ("npm ci", True),
        ("npx cowsay x", True),
        ("cargo install x", True),
        ("cargo update", True),
        ("go get x", True),
        ("apt-get install x", True),
        ("ssh host ls", True),
        ("dig example.com", True),
        ("sh -c 'curl https://example.com'", True),
        ("curl --version", False),
        ("git commit -m x", False),
        ("pytest", False),
        ("npm test", False),
        ("docker ps", False),
    ],
)
def test_which_commands_need_the_network(line, needs):
    assert any(act.network for act in understood(line).acts) is needs


def test_outside_is_the_floor_for_writing_and_a_question_for_reading():
    assert understood("cp README.md /etc/x").floor == "writes /etc/x, outside the workspace"
    assert understood("cp /etc/x README.md").floor == ""
    assert understood("ls > /tmp/own/x").floor == ""
    assert understood(f"cat {HOME}/.ssh/id_rsa").floor == (
        "reads /home/me/.ssh/id_rsa: it holds credentials"
    )


def test_a_link_is_judged_by_where_it_leads():
    assert verdict("cat out/hosts", machine=LINK) == "ask"
    assert understood("echo x > out/hosts", machine=LINK).floor
    assert verdict("cat deep/x", machine=LINK) == "allow"


def test_a_program_that_is_installed_in_the_workspace_is_a_build_wherever_its_link_leads():
    machine = Imagined(links={".venv/bin/python": "/opt/x/bin/python3.11"})
    assert verdict(".venv/bin/python -m pytest -q", machine=machine) == "builds"
    assert verdict("./.venv/bin/python --version", machine=machine) == "builds"
    assert verdict(".venv/bin/python -c 1", machine=machine) == "ask"
    assert verdict("../x/.venv/bin/python --version", machine=machine) == "ask"
    assert verdict("node_modules/.bin/rm x", machine=machine) == "ask"


def test_a_pattern_is_judged_by_every_name_it_stands_for():
    machine = Imagined(files=("a.txt", "-delete", "sub/x", ".env", "--pre=x"))
    assert verdict("cat *.txt", machine=machine) == "allow"
    assert verdict("rg x *", machine=machine) == "ask"
    assert verdict("find *", machine=machine) == "ask"
    assert understood("cat .e*", machine=machine).guard == "reads .env: it holds credentials"
    assert verdict("cat /*/x") == "ask"


def test_a_search_through_a_folder_reads_the_credentials_in_it():
    machine = Imagined(files=("src/app.py", ".env", "sub/server.pem"))
    assert verdict("grep -r x src", machine=machine) == "allow"
    assert understood("grep -r x .", machine=machine).guard == "reads .env: it holds credentials"
    assert understood("grep -r x sub", machine=machine).guard
    assert verdict("grep -r --include='*.py' x .", machine=machine) == "allow"
    assert verdict("rg x", machine=machine) == "allow"
    assert understood("rg -uu x", machine=machine).guard
    nested = Imagined(files=("src/app.py", "api/.env"))
    assert understood("grep -r x .", machine=nested).guard == "reads api/.env: it holds credentials"
    assert understood("find . -type f -exec cat {} +", machine=machine).guard


@pytest.mark.parametrize(
    ("line", "cwd"),
    [
        ("cd src && ls", "/ws/src"),
        ("cd src && cd .. && ls", "/ws"),
        ("(cd src && ls)", "/ws"),
        ("cd src | cat", "/ws"),
        ("cd src; ls", "/ws"),  # it may have failed
        ("cd src & ls", "/ws"),
        ("cd ./src/../src", "/ws/src"),
    ],
)
def test_where_the_shell_stands_in_the_end(line, cwd):
    assert (verdict(line), understood(line).cwd) == ("allow", cwd)


@pytest.mark.parametrize(
    "line",
    [
        "cd src && cat ../../x",
        "cd src; cat ../../x",
        "cd src && cat ../README.md; cat ../x",
        "(cd src && ls); cat ../x",
        "cd src | cat ../x",
        "cd src || cat ../x",
        "cd .. && cat ws/README.md",
        "cd src && cd ../.. && ls",
        "cd src && cd - && ls",
        "cd $X && ls",
        "cd; ls",
        "cd src && (cd .. && cd .. && ls)",
        "builtin cd .. && cat x",
        "eval 'cd ..' && cat x",
        "cd a; cd b; cd c; ls",
    ],
)
def test_paths_are_judged_in_the_folder_that_the_command_runs_in(line):
    assert verdict(line) in ("ask", "deny")


def test_a_cd_that_may_fail_leaves_both_folders():
    assert understood("cd build && rm -rf *").floor == ""
    assert understood("cd build; rm -rf *").floor == "deletes the workspace itself"


def test_a_cd_through_a_link_may_come_back_to_two_folders():
    assert verdict("cd deep && cat ../../README.md", machine=LINK) == "ask"
    assert verdict("cd out && ls", machine=LINK) == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "curl x",
        "/usr/bin/curl x",
        "c'ur'l x",
        "ls; curl x",
        "timeout 5 curl x",
        "sudo curl x",
        "env A=b curl x",
        "sh -c 'curl x'",
        "bash -c \"bash -c 'curl x'\"",
        "xargs curl",
        "$(curl x)",
        "ls `curl x`",
        "find . -exec curl {} ;",
        "ssh host curl x",
        "docker exec box curl x",
        "CURL x",
        "git bisect run curl x",
        "if true; then curl x; fi",
        "nice -n 1 nohup curl x",
        "cat <(curl x)",
        "su -c 'curl x'",
        "env -S 'curl x'",
        "sudo --strange y curl x",
        "time curl x",
        "X=1 curl x",
        "curl x > out",
        "curl x &",
        "watch curl x",
        "eval curl x",
        "trap 'curl x' EXIT",
    ],
)
def test_a_deny_for_a_command_is_seen_wherever_it_stands(line):
    assert verdict(line, "deny: shell(curl *)", "allow: shell") == "deny"


def test_a_deny_for_a_wrapper_is_seen():
    assert verdict("timeout 5 ls", "deny: shell(timeout *)") == "deny"
    assert verdict("git -C src push origin", "deny: shell(git push *)") == "deny"
    assert verdict("git -c a=b push", "deny: shell(git push *)") == "deny"


def test_rules_about_files_see_what_commands_touch():
    assert verdict("cat src/app.py", "deny: read(src/**)") == "deny"
    assert verdict("head -n 3 ./src/../src/app.py", "deny: read(src/**)") == "deny"
    assert verdict("cat *.md", "ask: read(*.md)") == "ask"
    assert verdict("cp README.md db.sql", "deny: write(**/*.sql)") == "deny"
    assert verdict("ls > db.sql", "deny: write(**/*.sql)") == "deny"
    assert verdict("curl https://evil.example/x", "deny: fetch(evil.example)") == "deny"


def test_an_allow_must_cover_all_that_is_not_harmless():
    assert verdict("touch x", "allow: shell(touch *)") == "allow"
    assert verdict("timeout 5 touch x", "allow: shell(touch *)") == "allow"
    assert verdict("timeout 5 touch x", "allow: shell(timeout *)") == "ask"
    assert verdict("sudo touch x", "allow: shell(sudo *)") == "ask"
    assert verdict("sudo touch x", "allow: shell(touch *)") == "ask"
    assert verdict("ls | xargs touch", "allow: shell(xargs *)") == "ask"
    assert verdict("LD_PRELOAD=x touch y", "allow: shell(touch *)") == "ask"
    assert verdict("touch x; rm y", "allow: shell(touch *)") == "ask"
    assert verdict("/tmp/evil/touch x", "allow: shell(touch *)") == "ask"
    assert verdict("touch $X", "allow: shell(touch *)") == "ask"


@pytest.mark.parametrize("value", ["C", "en_US.UTF-8", "1", ""])
def test_a_few_variables_are_harmless(value):
    assert verdict(f"LC_ALL={value} CI={value} ls") == "allow"
    assert verdict("TZ=Europe/Berlin date") == "allow"
    assert verdict("env LANG=C NO_COLOR=1 ls") == "allow"


def test_nothing_to_run_is_nothing_known():
    assert [understood(line).acts for line in ("", "   ", "# ls", "\n")] == [()] * 4


def test_a_folder_outside_is_asked_about_even_without_a_path():
    assert understood("ls", cwd="/etc").acts[0].reason == "it runs outside the workspace"
    assert understood("ls", cwd="/ws/src").acts == (replace(shell("ls"), within="/ws/src"),)


@pytest.mark.parametrize(
    "line",
    [
        "sysctl -a", "docker run --network host x", "pkill -u me node", "kill -1 1234", "fdisk -l",
        "git rm -r --cached .", "rm -rf node_modules build", "find . -name '*.pyc' -delete",
        "systemctl status x", "mount", "chmod -R u+w src", "cd build && rm -rf *", "rm -rf src/*",
        "history", "kubectl exec x -- ls /etc", "ssh host 'cat /etc/passwd > /tmp/x'", "./reboot",
        "rm -rf \"$X/build\"", "bash -c \"echo $(date)\"", "git clean -fdx", "git push --force",
    ],
)  # fmt: skip
def test_what_is_only_unusual_asks_and_is_not_forbidden(line):
    found = understood(line)
    assert (found.floor, found.guard, verdict(line)) == ("", "", "ask")


@pytest.mark.parametrize(
    "line",
    [
        "cat /dev/fd/../../../etc/passwd",
        "ls > -",
        "time cd .. && cat ../x",
        "time cd src && cat ../x",
        "printf %ln x",
        "git diff /etc/passwd:x README.md",
        "find -- . -fprint out",
        "grep -C x /etc/passwd",
        "test -f /etc/passwd",
        "watch 'ls &> x'",
        "sh -c 'ls [^a]*'",
    ],
)
def test_what_only_looks_harmless_asks(line):
    assert verdict(line) == "ask"


def test_that_a_file_of_credentials_is_there_may_be_seen():
    lines = ("ls -l .env", "test -f .env", "stat .env", "find .env", "[ -e .env ]")
    assert [verdict(line) for line in lines] == ["allow"] * 5
    assert verdict("ls -l .env", "deny: read(.env)") == "deny"


@pytest.mark.parametrize("text", [":(){ :|:& };:", "rm -rf /", "curl x | sh", "cat ~/.ssh/id_rsa"])
def test_what_is_quoted_is_a_word_and_not_a_command(text):
    assert verdict(f"echo '{text}'") == "allow"
    assert verdict(f"grep -rn '{text}' src") == "allow"
    assert understood(f"git commit -m '{text}'").floor == ""
    assert understood(f"bash -c '{text}'").floor or understood(f"bash -c '{text}'").guard
