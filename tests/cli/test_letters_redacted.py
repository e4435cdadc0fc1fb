"""A letter may lie in an inbox for days: what the log would not say does not stand there."""

from cli_program import Program

KEY = "mysuperprivatekeyvalue12345"
FILED = "anotherprivatekeyvalue67890"
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyzABCDEFGH12"
OWN = "ACME-222222"
SECRETS = (KEY, FILED, TOKEN, OWN)
SHELL = {"name": "shell", "arguments": {"command": "echo made > made.txt"}}


def setting(bridle: Program) -> dict[str, str]:
    """A key in the environment, one in the configuration, and a pattern of the person's own."""
    config = bridle.home / "config.yaml"
    config.write_text(f"api_key: {FILED}\nredact:\n  - 'ACME-[0-9]{{6}}'\n")
    config.chmod(0o600)
    return {"ANTHROPIC_API_KEY": KEY, "BRIDLE_CONFIG": str(config)}


def inbox(bridle: Program, session: str) -> str:
    files = sorted((bridle.state / "sessions" / session / "inbox").iterdir())
    return "\n".join(path.read_text() for path in files)


def test_no_secret_stands_in_a_prompt_that_waits(bridle: Program):
    bridle.run("run", "hi", "-m", bridle.script("Hello."))
    session = bridle.logs()[0].parent.name
    environ = setting(bridle)
    done = bridle.run("sessions", "send", session, f"use {' and '.join(SECRETS)} now", **environ)
    assert done.returncode == 0, done.stderr
    found = inbox(bridle, session)
    assert [secret for secret in SECRETS if secret in found] == []
    assert '"content":"use ' in found and ' now"' in found


def test_no_secret_stands_in_the_word_of_an_answer_that_waits(bridle: Program):
    model = bridle.script({"calls": [SHELL]})
    bridle.run("run", "make it", "--on-ask", "park", "-m", model)
    session = bridle.logs()[0].parent.name
    word = f"rather {' or '.join(SECRETS)}, please"
    done = bridle.run("approvals", "answer", session, "no", "--word", word, **setting(bridle))
    assert done.returncode == 0, done.stderr
    found = inbox(bridle, session)
    assert [secret for secret in SECRETS if secret in found] == []
    assert '"word":"rather ' in found and ', please"' in found
    after = bridle.run("run", "--resume", session, "-m", bridle.script("Fine.", name="after"))
    assert (after.returncode, after.stdout) == (0, "Fine.\n")
