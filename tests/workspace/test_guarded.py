"""Files that only a person may have read or changed are out of a script's reach, too."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from cage import LEVELS, USERS, SandboxRig, execute, lacks

from bridle.policy import Rule
from bridle.protocols.tool import Access, ToolContext
from bridle.tools.shell.tool import Shell, ShellOutput, ShellStop
from bridle.workspace.sandbox import Sandbox
from bridle.workspace.workspace import Workspace

pytestmark = pytest.mark.slow

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
ALL_LEVELS = ("none", *LEVELS)
NOTHING = Access()


@pytest.fixture(params=ALL_LEVELS)
def level(request):
    if request.param != "none" and (why := lacks("own", request.param)):
        pytest.skip(why)
    return request.param


@pytest.fixture
def bubblewrap():
    if why := lacks("own", "bubblewrap"):
        pytest.skip(why)
    return "bubblewrap"


class Session:
    """Commands of one session, with files that they may use."""

    def __init__(self, root, level, **given):
        self.root, self.memory, self.given = root, {}, given
        self.shell = Shell(Sandbox(str(root), level=level))

    def context(self, **given):
        given = {"memory": self.memory, **self.given, **given}
        return ToolContext(Workspace(self.root), "1", **given)

    async def run(self, command, access=NOTHING, **arguments):
        context = self.context(access=access)
        return await self.shell.execute({"command": command, **arguments}, context)


def everything(root):
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def put(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"the canary of {path}\n")


def reader(path):
    return f"python3 -c \"print(open('{path}').read())\""


CREDENTIALS = [".env", "deep/down/.env.local", "certs/server.pem", ".aws/credentials", ".ENV"]


@pytest.mark.parametrize("path", CREDENTIALS)
def test_a_program_cannot_read_credentials_and_is_told_why(tmp_path, bubblewrap, path):
    put(tmp_path, path, "readme.txt")
    (tmp_path / ".gitignore").write_text(".env*\n")
    before = everything(tmp_path)
    found = execute(tmp_path, bubblewrap, reader(path))
    assert "canary" not in found.text
    assert "PermissionError" in found.text
    assert f"commands cannot read {path}, because it holds credentials" in found.text
    assert f"`allow: read({path})`" in found.text
    assert "canary of readme" in execute(tmp_path, bubblewrap, reader("readme.txt")).text
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    "command",
    [
        "cp .env copy; cat copy",
        "ln .env copy; cat copy",
        "mv .env copy; cat copy",
        "mv sub other; cat other/.env",
        "cp -r sub other; cat other/.env",
        "cat link",
        "tar cf - . | tar xOf - ./.env",
        "cat /proc/self/cwd/.env",
    ],
)
def test_no_other_way_leads_to_them(tmp_path, bubblewrap, command):
    put(tmp_path, ".env", "sub/.env")
    (tmp_path / "link").symlink_to(".env")
    assert "canary" not in execute(tmp_path, bubblewrap, command).text
    assert (tmp_path / ".env").read_text() == "the canary of .env\n"


def test_the_file_behind_a_link_with_such_a_name_is_hidden(tmp_path, bubblewrap):
    put(tmp_path, "shared/production")
    (tmp_path / ".env").symlink_to("shared/production")
    assert "canary" not in execute(tmp_path, bubblewrap, "cat shared/production").text


FOLDER_LINKS = {
    "a folder": {".ssh": "keys"},
    "a folder in another": {"deep/.aws": "../keys", "x": "deep"},
    "a folder above one": {".config": "settings"},
    "a link behind a link": {".kube": "more", "more/inner": "../keys"},
    "a link to a link": {".gnupg": "other", "other": "keys"},
    "a file": {".ssh/id": "../keys/config"},
}


@pytest.mark.parametrize("links", FOLDER_LINKS.values(), ids=FOLDER_LINKS)
def test_what_a_link_to_a_folder_of_credentials_leads_to_is_hidden(tmp_path, bubblewrap, links):
    put(tmp_path, "keys/config", "keys/sub/id", "settings/gcloud/token", "readme")
    for link, target in links.items():
        (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / link).symlink_to(target)
    place = "settings/gcloud/token" if ".config" in links else "keys/config"
    found = execute(tmp_path, bubblewrap, f"cat {place} readme; cat keys/sub/id")
    assert f"canary of {place}" not in found.text
    assert "canary of readme" in found.text
    is_whole_folder = {".config", ".ssh/id"}.isdisjoint(links)
    assert ("canary of keys/sub/id" in found.text) == (not is_whole_folder)


def test_a_file_that_appears_behind_a_link_is_hidden_from_the_next_command(tmp_path, bubblewrap):
    put(tmp_path, "keys/id")
    (tmp_path / ".ssh").symlink_to("keys")
    (tmp_path / ".env").symlink_to("keys/later")
    session = Session(tmp_path, bubblewrap)
    asyncio.run(session.run("true"))
    put(tmp_path, "keys/later", "keys/new/id")
    found = asyncio.run(session.run("cat keys/id keys/later keys/new/id"))
    assert "canary" not in found.text


@pytest.mark.parametrize("target", ["/etc", "..", ".", "missing", ".ssh"])
def test_a_link_that_leads_elsewhere_hides_nothing_and_breaks_nothing(tmp_path, bubblewrap, target):
    put(tmp_path, "readme")
    (tmp_path / ".ssh").symlink_to(target)
    found = execute(
        tmp_path, bubblewrap, "cat readme; head -1 /etc/hostname >/dev/null && echo ran"
    )
    assert "canary of readme" in found.text
    assert "ran" in found.text


def test_a_file_that_was_allowed_is_read_and_no_other(tmp_path, bubblewrap):
    put(tmp_path, ".env", "key.pem")
    session = Session(tmp_path, bubblewrap)
    allowed = Access(reads=lambda path: path == ".env")
    found = asyncio.run(session.run("cat .env key.pem", allowed))
    assert "canary of .env" in found.text
    assert "canary of key.pem" not in found.text


def test_many_credentials_do_not_keep_a_command_from_running(tmp_path, bubblewrap):
    put(tmp_path, ".env", *(f"keys/{number}.pem" for number in range(1500)))
    found = execute(tmp_path, bubblewrap, "cat .env keys/1.pem; echo ran")
    assert "canary of .env" not in found.text
    assert "ran\n" in found.text


RUN_THEMSELVES = [
    ".envrc",
    ".vscode/tasks.json",
    ".github/workflows/x.yml",
    ".mcp.json",
    "package/.husky/pre-commit",
    ".pre-commit-config.yaml",
]


@pytest.mark.parametrize("path", RUN_THEMSELVES)
def test_what_runs_by_itself_cannot_be_made_by_a_script(tmp_path, level, path):
    script = f"mkdir -p {Path(path).parent}; echo evil > {path}"
    (tmp_path / "tool.sh").write_text(script)
    found = execute(tmp_path, level, "bash tool.sh")
    assert not (tmp_path / path).exists()
    assert (found.ok, found.stops) == (True, "")
    assert "only a person may allow changes to files that run by themselves" in found.text
    kept = [data for name, data in everything(tmp_path).items() if ".bridle-refused-" in name]
    assert kept == [b"evil\n"]
    again = execute(tmp_path, level, "true")
    assert again.text == "(no output)\n[exit code 0]"


@pytest.mark.parametrize("path", RUN_THEMSELVES)
@pytest.mark.parametrize(
    "change",
    ["echo evil >> {}", "rm {}", "echo x > x; mv x {}", "rm -r {}; mkdir {}", "chmod 7 {}"],
)
def test_what_runs_by_itself_stays_as_it_is(tmp_path, level, path, change):
    put(tmp_path, path)
    mode = (tmp_path / path).stat().st_mode
    (tmp_path / "tool.sh").write_text(change.format(path, path))
    found = execute(tmp_path, level, "bash tool.sh")
    assert (tmp_path / path).read_text() == f"the canary of {path}\n"
    assert (tmp_path / path).stat().st_mode == mode
    assert path.split("/")[0] in found.text


def test_the_folder_above_it_cannot_be_exchanged(tmp_path, level):
    put(tmp_path, ".github/workflows/ci.yml")
    script = "mv .github away; mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml"
    execute(tmp_path, level, script)
    assert (tmp_path / ".github/workflows/ci.yml").read_text().startswith("the canary")


def test_a_change_that_was_allowed_stays_and_no_other_does(tmp_path, level):
    put(tmp_path, ".envrc", ".mcp.json")
    session = Session(tmp_path, level)
    allowed = Access(writes=lambda path: path in (".envrc", ".github/workflows/ci.yml"))
    command = (
        "echo new > .envrc; echo new > .mcp.json; mkdir -p .github/workflows; "
        "echo new > .github/workflows/ci.yml; echo new > .github/workflows/other.yml; true"
    )
    asyncio.run(session.run(command, allowed))
    assert (tmp_path / ".envrc").read_text() == "new\n"
    assert (tmp_path / ".github/workflows/ci.yml").read_text() == "new\n"
    assert not (tmp_path / ".github/workflows/other.yml").exists()
    assert (tmp_path / ".mcp.json").read_text().startswith("the canary")


def test_a_command_that_a_person_let_out_of_the_sandbox_keeps_its_changes(tmp_path, level):
    put(tmp_path, ".envrc")
    session = Session(tmp_path, level)
    asyncio.run(session.run("echo new > .envrc", sandbox=False))
    assert (tmp_path / ".envrc").read_text() == "new\n"


def test_a_new_environment_and_its_packages_are_let_be(tmp_path, level):
    command = (
        "mkdir -p .venv/lib/python3/site-packages node_modules/a/.vscode; touch .venv/pyvenv.cfg; "
        "echo x > .venv/lib/python3/site-packages/a.pth; "
        "mkdir -p .direnv/python-3/bin; touch .direnv/python-3/pyvenv.cfg; "
        "echo x > .direnv/python-3/bin/tool; "
        "echo x > node_modules/a/.vscode/tasks.json; echo x > node_modules/a/cert.pem; "
        "mkdir -p vendor/b/.github/workflows; echo x > vendor/b/.travis.yml; "
        "echo x > vendor/b/.github/workflows/ci.yml"
    )
    found = execute(tmp_path, level, command)
    assert found.text == "(no output)\n[exit code 0]"
    assert len(everything(tmp_path)) == 8
    assert "x\n" in execute(tmp_path, level, "cat node_modules/a/cert.pem").text


def test_nothing_is_hidden_by_calling_a_folder_an_environment(tmp_path, level):
    put(tmp_path, ".env", ".vscode/settings.json", "sub/file")
    session = Session(tmp_path, level)
    asyncio.run(session.run("touch pyvenv.cfg sub/pyvenv.cfg"))
    command = (
        "echo x > .envrc; echo x > sub/.envrc; mkdir -p .vscode/a .idea/a; echo x > .idea/x.iml; "
        "echo x > .vscode/tasks.json; touch .vscode/a/pyvenv.cfg .idea/a/pyvenv.cfg; cat .env"
    )
    found = asyncio.run(session.run(command))
    for path in (".envrc", "sub/.envrc", ".vscode/tasks.json", ".idea/x.iml"):
        assert not (tmp_path / path).exists()
    assert ("canary of .env" in found.text) == (level != "bubblewrap")


@pytest.mark.parametrize(
    "command",
    [
        "mkdir node_modules; mv sub node_modules/sub",
        "mkdir -p a/site-packages; mv sub a/site-packages; mkdir sub; echo x > sub/.env",
        "mkdir .git; mv sub .git/sub",
        "mv .kube plain",
        "rm link.env",
    ],
)
def test_credentials_stay_hidden_when_their_folder_gets_another_name(tmp_path, bubblewrap, command):
    put(tmp_path, "sub/.env", ".kube/config", "settings/production")
    (tmp_path / "link.env").symlink_to("settings/production")
    session = Session(tmp_path, bubblewrap)
    found = asyncio.run(session.run(command)).text
    assert ("and was moved to" in found) == ("mv" in command)
    found = asyncio.run(session.run("grep -ra canary . 2>&1; true")).text
    assert "canary of" not in found
    if "mv" in command:  # a later session finds them, too
        found = execute(tmp_path, bubblewrap, "grep -ra canary . 2>&1; true").text
        assert found.count("canary of") == found.count("canary of settings/production")


@pytest.mark.parametrize("name", ["server", "sub.bridle-refused-0123abcd"])
def test_a_folder_with_credentials_can_be_renamed(tmp_path, bubblewrap, name):
    put(tmp_path, "sub/.env")
    session = Session(tmp_path, bubblewrap)
    assert asyncio.run(session.run(f"mv sub {name}")).text == "(no output)\n[exit code 0]"
    assert "canary" not in asyncio.run(session.run(f"cat {name}/.env")).text
    assert (tmp_path / name / ".env").is_file()


def test_credentials_are_neither_lost_nor_read_while_a_job_renames_their_folder(
    tmp_path, bubblewrap
):
    put(tmp_path, "sub/.env")

    async def use():
        closers = []
        session = Session(tmp_path, bubblewrap)
        flip = "while :; do mv sub node_modules; mv node_modules sub; done 2>/dev/null"
        context = session.context(at_close=closers.append)
        await session.shell.execute({"command": flip, "background": True}, context)
        look = "for i in {1..20}; do cat sub/.env node_modules/.env 2>/dev/null; done; true"
        texts = [(await session.run(look)).text for _ in range(8)]
        for close in closers:
            await close()
        return texts

    assert not any("canary" in text for text in asyncio.run(use()))
    held = [data for path, data in everything(tmp_path).items() if path.endswith("/.env")]
    assert b"the canary of sub/.env\n" in held


def test_other_files_with_such_names_do_not_crowd_out_the_credentials(tmp_path, bubblewrap):
    put(tmp_path, "a/b/.env")
    session = Session(tmp_path, bubblewrap)
    asyncio.run(session.run("touch {1..400}.env"))
    assert "canary of" not in asyncio.run(session.run("cat a/b/.env")).text
    assert "canary of" not in execute(tmp_path, bubblewrap, "cat a/b/.env").text


@pytest.mark.parametrize("name", ["x.bridle-refused.yml", "x.bridle-refused-0123abcd.yml"])
def test_no_name_keeps_a_file_from_being_looked_at(tmp_path, level, name):
    put(tmp_path, ".github/workflows/ci.yml")
    execute(tmp_path, level, f"echo x > .github/workflows/{name}")
    assert not (tmp_path / ".github/workflows" / name).exists()


@pytest.fixture
def repo(tmp_path):
    """Two branches that differ in what runs by itself."""

    def git(*words):
        subprocess.run([*GIT, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    put(tmp_path, ".envrc", "file")
    git("add", "-A")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "other")
    (tmp_path / ".envrc").write_text("of the other branch\n")
    put(tmp_path, ".github/workflows/ci.yml")
    git("add", "-A")
    git("commit", "-qm", "two")
    git("checkout", "-q", "main")
    return tmp_path


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_what_is_committed_is_no_secret_until_it_changes(repo, bubblewrap, packed):
    """Certificates for tests, and settings such as `.npmrc`; and git goes on to work."""
    put(repo, "tests/cert.pem", ".npmrc")
    subprocess.run(["git", "add", "-A"], cwd=repo, check=True)
    subprocess.run([*GIT, "commit", "-qm", "x"], cwd=repo, check=True)
    if packed:
        subprocess.run(["git", "gc", "-q"], cwd=repo, check=True)
    found = execute(repo, bubblewrap, "cat tests/cert.pem .npmrc; git status --short; git stash")
    assert "canary of tests/cert.pem\nthe canary of .npmrc" in found.text
    assert "No local changes to save" in found.text
    (repo / ".npmrc").write_text("//registry/:_authToken=canary")
    assert "canary" not in execute(repo, bubblewrap, "cat .npmrc").text


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_git_puts_what_it_had_before_the_session_in_place(repo, level, packed):
    if packed:
        subprocess.run(["git", "gc", "-q"], cwd=repo, check=True)
    session, allowed = Session(repo, level), Access(git="known")

    async def scenario():
        found = await session.run("git checkout -q other && git status --short", allowed)
        assert found.text == "(no output)\n[exit code 0]"
        assert (repo / ".envrc").read_text() == "of the other branch\n"
        found = await session.run("git checkout -q main && git status --short", allowed)
        assert found.text == "(no output)\n[exit code 0]"
        assert not (repo / ".github/workflows/ci.yml").exists()

    asyncio.run(scenario())


def test_git_brings_back_what_the_person_had_not_committed(repo, level):
    (repo / ".envrc").write_text("of the person\n")

    async def scenario():
        session, allowed = Session(repo, level), Access(git="known")
        stash = f"{' '.join(GIT)} stash"
        await session.run(f"{stash} -q", allowed)
        assert (repo / ".envrc").read_text() == "the canary of .envrc\n"
        await session.run(f"{stash} pop -q", allowed)
        assert (repo / ".envrc").read_text() == "of the person\n"

    asyncio.run(scenario())


def test_git_does_not_put_in_place_what_the_session_has_made(repo, level):
    words = " ".join(GIT)
    script = (
        f"h=$(echo evil | git hash-object -w --stdin); git update-index --cacheinfo "
        f"100644,$h,.envrc; git update-index --add --cacheinfo 100644,$h,.mcp.json; "
        f"{words} commit -qm evil"
    )

    async def scenario():
        session = Session(repo, level)
        await session.run(script)
        found = await session.run("git checkout -f -q main", Access(git="known"))
        assert (repo / ".envrc").read_text() == "the canary of .envrc\n"
        assert not (repo / ".mcp.json").exists()
        assert ".envrc" in found.text
        found = await session.run("git checkout -f -q main", Access(git="any"))
        assert (repo / ".envrc").read_text() == "evil\n"

    asyncio.run(scenario())


def prepare(words):
    """A command that puts evil content into the repository, as git would have it."""
    return (
        "h=$(echo evil | git hash-object -w --stdin); git update-index --cacheinfo "
        f"100644,$h,.envrc; git update-index --add --cacheinfo 100644,$h,.mcp.json; {words}"
    )


PREPARED = {
    "a commit": f"{' '.join(GIT)} commit -qm evil",
    "a branch": "git branch -f evil $(echo x | "
    f"{' '.join(GIT)} commit-tree $(git write-tree)); git reset -q",
    "another object for a commit": f"{' '.join(GIT)} commit -qm evil; new=$(git rev-parse HEAD); "
    "git reset -q HEAD~1; git replace HEAD $new",
}


@pytest.mark.parametrize("words", PREPARED.values(), ids=PREPARED)
@pytest.mark.parametrize("how", ["resumed", "subagent"])
def test_what_a_session_has_made_is_not_earlier_content_for_its_family(
    repo, level, tmp_path_factory, words, how
):
    sessions = tmp_path_factory.mktemp("sessions")
    (sessions / "one").mkdir()
    (sessions / "two").mkdir()
    first = Session(repo, level, folder=str(sessions / "one"))
    asyncio.run(first.run(prepare(words)))
    given = {"folder": str(sessions / "one")}
    if how == "subagent":
        given = {"folder": str(sessions / "two"), "origin": "one"}
    second = Session(repo, level, **given)
    target = "evil" if words == PREPARED["a branch"] else "HEAD"
    asyncio.run(second.run(f"git checkout -f -q {target} -- .", Access(git="known")))
    assert (repo / ".envrc").read_text() == "the canary of .envrc\n"
    assert not (repo / ".mcp.json").exists()


FORGE = """
import os, subprocess, zlib
say = lambda *words: subprocess.run(["git", *words], capture_output=True, check=True).stdout
blob = subprocess.run(["git", "hash-object", "-w", "--stdin"], input=b"evil\\n",
                      capture_output=True).stdout.decode().strip()
tree = say("rev-parse", "HEAD^{tree}").decode().strip()
old = say("cat-file", "tree", tree)
at = old.index(b".envrc\\0") + len(b".envrc\\0")
new = old[:at] + bytes.fromhex(blob) + old[at + 20:]
path = f".git/objects/{tree[:2]}/{tree[2:]}"
os.chmod(path, 0o600)
open(path, "wb").write(zlib.compress(b"tree %d\\0" % len(new) + new))
"""


def test_a_forged_object_is_not_earlier_content(repo, level):
    """git itself believes what lies under an object's name."""
    (repo / "forge.py").write_text(FORGE)

    async def scenario():
        session = Session(repo, level)
        await session.run("python3 forge.py")
        line = "git checkout -f -q HEAD -- .envrc; cat .envrc"
        found = await session.run(line, Access(git="known"))
        assert (repo / ".envrc").read_text() == "the canary of .envrc\n"
        assert "evil" in found.text

    asyncio.run(scenario())


def test_git_puts_an_older_commit_in_place_also_after_it_has_packed_everything(repo, level):
    subprocess.run([*GIT, "tag", "-am", "x", "tagged", "other"], cwd=repo, check=True)
    subprocess.run(["git", "branch", "-qD", "other"], cwd=repo, check=True)
    (repo / ".envrc").write_text("newer\n")
    subprocess.run([*GIT, "commit", "-qam", "three"], cwd=repo, check=True)

    async def scenario():
        session, allowed = Session(repo, level), Access(git="known")
        await session.run("git gc -q --prune=now")
        found = await session.run("git checkout -q HEAD~1", allowed)
        assert (repo / ".envrc").read_text() == "the canary of .envrc\n", found.text
        await session.run("git checkout -q tagged", allowed)
        assert (repo / ".github/workflows/ci.yml").is_file()

    asyncio.run(scenario())


def wait_for(name):
    return f"until [ -e {name} ]; do sleep 0.01; done"


async def begun(session, line, access=NOTHING):
    """A command that has said that it is ready; its task."""
    ready = asyncio.Event()
    context = session.context(access=access, emit=lambda event: ready.set())
    task = asyncio.create_task(session.shell.execute({"command": line}, context))
    await ready.wait()
    return task


def test_what_one_session_may_not_do_does_not_become_the_ground_of_another(tmp_path, level):
    """Subagents side by side: the second begins while the first one's change stands."""
    put(tmp_path, ".mcp.json")

    async def scenario():
        first, second = Session(tmp_path, level), Session(tmp_path, level)
        evil = "echo evil > .mcp.json; echo evil > .envrc; echo ready"
        one = await begun(first, f"{evil}; {wait_for('a')}")
        two = await begun(second, f"echo ready; {wait_for('b')}")
        (tmp_path / "a").touch()
        await one
        (tmp_path / "b").touch()
        await two
        assert (tmp_path / ".mcp.json").read_text().startswith("the canary")
        assert not (tmp_path / ".envrc").exists()

    asyncio.run(scenario())


def test_what_one_session_may_do_stays_when_another_ends(tmp_path, level):
    put(tmp_path, ".envrc", ".mcp.json")

    async def scenario():
        first, second = Session(tmp_path, level), Session(tmp_path, level)
        two = await begun(second, f"echo ready; {wait_for('b')}")
        allowed = Access(writes=lambda path: path in (".envrc", ".mcp.json", ".exrc"))
        await first.run("echo new > .envrc; echo new > .exrc; rm .mcp.json", allowed)
        (tmp_path / "b").touch()
        await two
        assert (tmp_path / ".envrc").read_text() == "new\n"
        assert (tmp_path / ".exrc").read_text() == "new\n"
        assert not (tmp_path / ".mcp.json").exists()
        await first.run("echo evil > .envrc; true")
        assert (tmp_path / ".envrc").read_text() == "new\n"

    asyncio.run(scenario())


def test_what_a_command_did_outside_of_the_sandbox_stays_when_another_ends(tmp_path, level):
    put(tmp_path, ".envrc")

    async def scenario():
        first, second = Session(tmp_path, level), Session(tmp_path, level)
        two = await begun(second, f"echo ready; {wait_for('b')}")
        await first.run("echo new > .envrc", sandbox=False)
        (tmp_path / "b").touch()
        await two
        assert (tmp_path / ".envrc").read_text() == "new\n"

    asyncio.run(scenario())


def test_what_was_allowed_beside_a_job_stays_when_the_job_ends(tmp_path, level):
    put(tmp_path, ".envrc")

    async def scenario():
        session = Session(tmp_path, level)
        started = await session.run("echo ready; sleep 1000", background=True)
        await session.run("echo new > .envrc", Access(writes=lambda path: path == ".envrc"))
        await ShellStop().execute({"id": started.data["job"]}, session.context())
        assert (tmp_path / ".envrc").read_text() == "new\n"

    asyncio.run(scenario())


def test_a_job_that_writes_all_the_time_never_becomes_the_ground(tmp_path, level):
    put(tmp_path, ".mcp.json")

    async def scenario():
        session = Session(tmp_path, level)
        loop = "while :; do echo evil > .envrc; echo evil > .mcp.json; done 2>/dev/null"
        started = await session.run(loop, background=True)
        for _ in range(10):
            await session.run("true")
        await ShellStop().execute({"id": started.data["job"]}, session.context())
        assert not (tmp_path / ".envrc").exists()
        assert (tmp_path / ".mcp.json").read_text().startswith("the canary")

    asyncio.run(scenario())


def test_a_command_that_was_cancelled_leaves_no_permission_behind(tmp_path, level):
    put(tmp_path, ".envrc")

    async def scenario():
        session, other = Session(tmp_path, level), Session(tmp_path, level)
        allowed = Access(writes=lambda path: True)
        task = await begun(session, "echo ready; sleep 1000", allowed)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await other.run("echo evil > .envrc; true")
        assert (tmp_path / ".envrc").read_text().startswith("the canary")

    asyncio.run(scenario())


def test_a_job_in_the_background_is_held_as_well(tmp_path, level):
    put(tmp_path, ".mcp.json")

    async def scenario():
        session = Session(tmp_path, level)
        line = "echo evil > .envrc; echo evil > .mcp.json; echo ready; sleep 1000"
        job = (await session.run(line, background=True)).data["job"]
        said = ""
        while "ready" not in said:
            arguments = {"id": job, "wait": 0.01}
            said += (await ShellOutput().execute(arguments, session.context())).text
        found = await session.run("true")
        assert ".envrc (the command's version is kept" in found.text
        assert not (tmp_path / ".envrc").exists()
        assert (tmp_path / ".mcp.json").read_text().startswith("the canary")
        await ShellStop().execute({"id": job}, session.context())

    asyncio.run(scenario())


def test_a_job_in_the_background_leaves_no_trace_of_its_sandbox(tmp_path, level):
    async def scenario():
        session = Session(tmp_path, level)
        started = await session.run("echo ready; sleep 1000", background=True)
        found = await session.run("ls -A")
        assert found.text == "(no output)\n[exit code 0]"
        await ShellStop().execute({"id": started.data["job"]}, session.context())

    asyncio.run(scenario())
    assert list(tmp_path.iterdir()) == []


def test_a_rule_has_to_name_what_it_opens():
    from bridle.policy import Act, is_allowed_by_pattern

    def opens(*rules):
        return is_allowed_by_pattern(Act(("read",), ".env", is_path=True), rules)

    assert opens(Rule("allow", "read", ".env"))
    assert opens(Rule("allow", "read", ".env*"))
    assert not opens(Rule("allow", "read"))
    assert not opens(Rule("allow", "read", "**"))
    assert not opens(Rule("allow", "read", "*.pem"))
    assert not opens(Rule("allow", "read", ".env"), Rule("deny", "read", "**/.env"))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("user", USERS)
def test_it_holds_for_whoever_runs_it(user, level):
    """Root opens what has no right for anybody; an ordinary user mounts as nobody else does."""
    if why := lacks(user, level):
        pytest.skip(why)
    rig = SandboxRig(user)
    try:
        put(rig.root, ".env", "sub/key.pem", ".vscode/tasks.json")
        script = (
            "cat .env sub/key.pem; chmod 777 .env; cat .env; echo evil >> .vscode/tasks.json; "
            "echo evil > .envrc; ls -A"
        )
        text = rig.run(level, script)
        if level == "bubblewrap":
            assert "canary" not in text
        assert ".bridle\n" not in text
        left = sorted(path.name.partition(".bridle-refused")[0] for path in rig.root.iterdir())
        assert left == [".env", ".envrc", ".vscode", "sub"]
        assert not (rig.root / ".envrc").exists()
        for path in (".env", "sub/key.pem", ".vscode/tasks.json"):
            assert (rig.root / path).read_text() == f"the canary of {path}\n"
    finally:
        rig.close()
