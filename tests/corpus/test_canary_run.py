"""Twenty secrets around a real run with `--yes`: none is in log, events, child or model request.

They lie in the environment, in files of the workspace and of the home folder, and in what a script
prints; the model asks for all of them with every tool that it has.
"""

import asyncio
import json
import os

import pytest
from cli_program import Program

from bridle.testing import FakeAnthropic
from rig import call, calls

BODY = "q7Rm2Xv9Kp4Ls8Tw3Zn6Hc1Yb5Gd0Jf7Ae2Uo9Mi4"
ELSEWHERE = "ANTHROPIC_BASE_URL=http://127.0.0.1:9\nBRIDLE_MODEL=openai/x\n"  # counts for nothing
ENVIRONMENT = {
    "ANTHROPIC_API_KEY": f"sk-ant-api03-e01{BODY}",
    "OPENAI_API_KEY": f"sk-proj-e02{BODY}",
    "OPENROUTER_API_KEY": f"sk-or-v1-e03{BODY}",
    "AWS_SECRET_ACCESS_KEY": f"e04{BODY[:37]}",
    "AWS_SESSION_TOKEN": f"e05{BODY}",
    "GITHUB_TOKEN": f"ghp_e06{BODY[:33]}",
    "NPM_TOKEN": f"npm_e07{BODY[:33]}",
    "HF_TOKEN": f"hf_e08{BODY[:31]}",
    "DATABASE_URL": f"postgres://app:e09{BODY[:20]}@db.example/x",
    "MY_COMPANY_PASSWORD": f"e10{BODY[:20]}",
    "BRIDLE_API_KEY": f"e11-{BODY}",
}
WORKSPACE = {
    ".env": f"{ELSEWHERE}API_KEY=w12{BODY}\nDB_PASSWORD=w13{BODY[:20]}\n",
    "config/.env.local": f"SECRET_TOKEN=w14{BODY}\n",
    "server.pem": f"-----BEGIN PRIVATE KEY-----\nw15{BODY}\n-----END PRIVATE KEY-----\n",
    ".npmrc": f"//registry.example/:_authToken=npm_w16{BODY[:33]}\n",
    "print.sh": (
        f"echo ghp_p17{BODY[:33]}\necho sk-ant-api03-p18{BODY}\necho AKIAP19QW3RTY7UIOP2A\n"
    ),
}
HOME = {
    ".aws/credentials": f"[default]\naws_secret_access_key = h20{BODY[:37]}\n",
    ".netrc": f"machine x login y password h21{BODY[:20]}\n",
    ".ssh/id_rsa": f"-----BEGIN RSA PRIVATE KEY-----\nh22{BODY}\n-----END RSA PRIVATE KEY-----\n",
    ".config/gh/hosts.yml": f"github.com:\n  oauth_token: gho_h23{BODY[:33]}\n",
    ".git-credentials": f"https://me:h24{BODY[:20]}@github.com\n",
}
CANARIES = [
    *(f"e{number:02}" for number in range(1, 12)),
    *("w12", "w13", "w14", "w15", "w16", "p17", "p18", "P19"),
    *("h20", "h21", "h22", "h23", "h24"),
]
BODIES = [f"{name}{'-' if name == 'e11' else ''}{BODY[:15]}" for name in CANARIES if name != "P19"]
SHELL = [
    "cat .env",
    "cat config/.env.local",
    "env",
    "printenv > seen.txt; env >> seen.txt; export -p >> seen.txt",
    "cat /proc/self/environ",
    "cat ~/.aws/credentials ~/.netrc ~/.ssh/id_rsa",
    "cp ~/.git-credentials x.txt",
    "grep -rn . . --include='.env*'",
    "sh print.sh",
    "sh print.sh > printed.txt; cat printed.txt",
    "seq 1 30000; sh print.sh; seq 1 30000; sh print.sh; seq 1 30000",
    "python3 -c 'print(open(\".env\").read())'",
    "ps eww -p $PPID",
]
FILES = [".env", "config/.env.local", "server.pem", ".npmrc", "../home/.aws/credentials"]


@pytest.fixture
def bridle(tmp_path):
    program = Program(tmp_path)
    for folder, files in ((program.workspace, WORKSPACE), (program.home, HOME)):
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return program


def left_in(text):
    """The canaries that can be read there."""
    found = [body for body in BODIES if body in text]
    return found + (["P19"] if "AKIAP19QW3RTY7UIOP2A" in text else [])


def everything():
    return "\n".join([*ENVIRONMENT.values(), *WORKSPACE.values(), *HOME.values()])


def test_there_are_twenty_and_they_can_be_found():
    assert len(CANARIES) > 20
    assert len(left_in(everything())) == len(CANARIES)


def run_against(bridle, replies):
    """The program with `--yes` and `--json`; what was sent to the vendor."""

    async def both():
        async with FakeAnthropic(replies) as server:
            environ = {**ENVIRONMENT, "ANTHROPIC_BASE_URL": server.url}
            flags = ("--yes", "--json", "-m", "anthropic/claude-x")
            done = await asyncio.to_thread(bridle.run, "run", "find them", *flags, **environ)
            return done, list(server.requests)

    return asyncio.run(both())


def kept_with_secrets(bridle):
    """What bridle keeps of a session. Undo has to keep files as they are, byte for byte."""
    kept = [path for path in bridle.state.rglob("*") if path.is_file()]
    ours = [path for path in kept if "undo" not in path.relative_to(bridle.state).parts]
    return [str(path) for path in ours if left_in(path.read_text(errors="replace"))]


def test_no_secret_is_in_log_events_child_or_model_request(bridle):
    """State and secrets: API keys never reach the log, an event, an error or a child process."""
    asked = [
        *(call("shell", command=line) for line in SHELL),
        calls(*(("read", {"path": path}) for path in FILES)),
        calls(("grep", {"pattern": "."}), ("grep", {"pattern": "KEY|TOKEN", "path": "config"})),
        calls(("list", {"path": "."}), ("glob", {"pattern": "**/*"})),
        "That is all.",
    ]
    done, requests = run_against(bridle, asked)
    assert len(requests) == len(asked), done.stderr
    assert left_in(done.stdout + done.stderr) == []
    assert left_in(bridle.logs()[0].read_text()) == []
    assert left_in(json.dumps([request.body for request in requests])) == []
    assert kept_with_secrets(bridle) == []


def test_a_child_has_no_key_in_its_environment(bridle):
    """Commands 4: each command gets a fresh, allow-listed environment."""
    replies = [call("shell", command="printenv | sort > seen.txt"), "done"]
    done, _ = run_against(bridle, replies)
    seen = (bridle.workspace / "seen.txt").read_text()
    assert left_in(seen) == [], done.stderr
    names = {line.partition("=")[0] for line in seen.splitlines()}
    assert names.isdisjoint(ENVIRONMENT)
    assert {"PATH", "HOME"} <= names


def test_a_secret_that_is_copied_into_the_workspace_is_still_not_told(bridle):
    """What a script prints is told to nobody, although the script itself may run."""
    done, requests = run_against(bridle, [call("shell", command="sh print.sh"), "done"])
    said = json.dumps(requests[-1].body)
    assert "exit code 0" in said
    assert left_in(said) == []
    assert left_in(done.stdout) == []
    assert os.environ.get("ANTHROPIC_API_KEY") is None
