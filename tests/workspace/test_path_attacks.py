"""Paths that want out, or at what is protected: hundreds, on real files. None gets there."""

import os
from pathlib import Path

import pytest
from attacked import CANARY, LINKS, Field

from bridle.errors import ToolError
from bridle.protocols.machine import Place
from bridle.workspace.workspace import Workspace


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)


def words(text: str) -> list[str]:
    return text.split()


WORDS = words("""
.. ../ ../.. ../../.. ./.. ./../. src/../.. src/../../ws-evil/secret ../ws-evil ../ws-evil/secret
../ws-evil/new ../ws/../ws-evil/secret src/./../.././ws-evil/secret .//..//ws-evil//secret
../home/.ssh/id_rsa ../home/.config/bridle/policy.yaml
{base} {base}/ {base}/ws-evil {base}/ws-evil/secret {base}/ws-evil/new //{base}/ws-evil/secret
{base}/ws/../ws-evil/secret {base}/ws/src/../../ws-evil/secret {base}/./ws-evil/./secret
{base}/ws-evil/../ws-evil/secret {base}/wss/secret {base}/w {base}/ws-
{base}/ws-evil/../../etc/passwd {base}/home/.ssh/id_rsa {base}/ws/../home/.ssh/id_rsa
/ // /. /etc /etc/passwd /etc/shadow //etc/passwd ///etc/passwd /./etc/passwd /../etc/passwd
/proc/self/root /proc/self/root/etc/passwd /proc/self/root{base}/ws-evil/secret
/proc/self/root{base}/ws/src/a.py /proc/self/cwd /proc/self/cwd/x /proc/self/environ /proc/self/mem
/proc/self/fd/0 /proc/self/fd/1 /proc/thread-self/root/etc/passwd /proc/1/root/etc/passwd
/proc/1/environ /dev/null /dev/zero /dev/stdin /dev/stdout /dev/fd/0 /dev/tty /dev/mem /tmp
/dev/shm/x /var/run/docker.sock /root/.ssh/id_rsa
""")

DOORS = words("""
out absout chain chain2 chain3 chain4 chain5 up/ws-evil upup/{name}/ws-evil srcup dotdot/ws-evil
top{base}/ws-evil twin procroot{base}/ws-evil src/out src/up/ws-evil {base}/ws/out {base}/ws/chain
""")
BEHIND = ["", "/", "/.", "/secret", "/./secret", "//secret", "/new", "/new/deep", "/secret/x"]

ENDS = words("""
outfile absfile dangling dangling/x danglingdeep danglingdeep/x gone devzero devtty proccwd
proccwd/x procfd procfd/0 procfd/1 key shadow environ top top/etc/passwd up upup dotdot procroot
procroot/etc/passwd loop loop/x ping pong/x grow src/up up/home/.ssh/id_rsa
upup/{name}/home/.ssh/id_rsa
""")

ODD = [
    "pipe",
    "socket",
    "device",
    "pipe/x",
    "",
    "\0",
    "a\0/../../ws-evil/secret",
    "out\0",
    "x" * 300,
    "x/" * 2100,
    "\ud800",
    "..\\ws-evil\\secret",
    "%2e%2e/ws-evil/secret",
    "..%2fws-evil",
    "\u2024\u2024/ws-evil/secret",
    "\uff0e\uff0e/ws-evil/secret",
    "..\u2215ws-evil/secret",
    "~/.ssh/id_rsa",
    "$HOME/.ssh/id_rsa",
    "file:///etc/passwd",
    " ../ws-evil/secret",
    "../ws-evil/secret ",
    "....//ws-evil/secret",
    "..;/ws-evil/secret",
    "src/\n/../../../ws-evil/secret",
]

PROTECTED = words("""
.git/config .git/hooks .git/hooks/pre-commit .git/hooks/post-commit .git/config.worktree
.git/info/attributes .git/objects/info/alternates .git/modules/x/config .git/worktrees/x/gitdir
.git/commondir sub/.git/config sub/.git/hooks/x sub/deep/.git/hooks/x .bridle
.bridle/policy.yaml .bridle/new/deep.yaml src/.bridle/hooks.yaml x.git/config x.git/hooks/update
.GIT/config .Git/hooks/x .git./config .git/hooks./x GIT~1/config .gi\u200bt/config \uff0egit/config
./.git/config src/../.git/config .git//config {base}/ws/.git/config {base}/ws/src/../.git/hooks/x
git/config git/hooks/pre-commit git/hooks/new hooks/pre-commit hooks/new newhook gitconfig
src/git/config src/git/hooks/x own/policy.yaml own/new chain/../.git/config .BRIDLE/policy.yaml
""")

ATTACKS = [*WORDS, *(door + behind for door in DOORS for behind in BEHIND), *ENDS, *ODD, *PROTECTED]


def spelled(field: Field, path: str) -> str:
    return path.replace("{base}", str(field.base)).replace("{name}", field.base.name)


def test_there_are_enough_of_them() -> None:
    assert len(set(ATTACKS)) == len(ATTACKS)
    assert len(ATTACKS) >= 150


@pytest.mark.parametrize("path", ATTACKS)
def test_nothing_outside_is_read_or_changed_and_nothing_protected_written(
    field: Field, path: str
) -> None:
    """(A6)"""
    before = field.kept()
    with field.odd_files():
        seen, refused = field.attack(spelled(field, path))
    assert field.kept() == before
    assert [one for one in seen if one in (CANARY, CANARY[:10])] == []
    assert "write" in refused or "below" in refused


@pytest.mark.parametrize(
    "path", [*WORDS, *(door + "/secret" for door in DOORS), *ENDS], ids=lambda path: path
)
def test_no_path_that_leads_out_is_resolved_or_placed_inside(field: Field, path: str) -> None:
    """(A6)"""
    path = spelled(field, path)
    assert field.files.resolve_path(path) is None
    assert not field.files.is_path_safe(path)
    found = field.machine.place(path, str(field.root))
    assert not found.inside or found.why == "its links lead in a circle"


@pytest.mark.parametrize("path", PROTECTED)
def test_what_is_protected_is_placed_as_such(field: Field, path: str) -> None:
    found = field.machine.place(spelled(field, path), str(field.root))
    assert found.writing == "deny" or path == "chain/../.git/config"  # that one leads out
    assert found.why or not found.inside


def test_the_folder_of_a_repository_stays_where_it_is(field: Field) -> None:
    before = field.kept()
    for path in (".git", "sub/.git", ".GIT", "src/.git"):
        with pytest.raises(ToolError, match="is protected"):
            field.files.write(path, b"gitdir: elsewhere")
        with pytest.raises(ToolError, match="is protected"):
            field.files.rename("src/a.py", path)
        with pytest.raises(ToolError, match="is protected"):
            field.files.remove(path)
    assert field.kept() == before


def test_a_protected_name_is_not_reached_through_a_link(field: Field) -> None:
    with pytest.raises(ToolError, match=r"lies behind one, to `\.env`: it holds credentials"):
        field.files.read("env")
    with pytest.raises(ToolError, match="Use that path itself"):
        field.files.write("git/HEAD", b"x")
    assert field.files.read(".env") == CANARY  # by its own name: the gate has asked


def test_a_hard_link_keeps_its_other_name_and_takes_a_question(field: Field) -> None:
    """The system cannot say where a file's other names are: reading asks, writing parts them."""
    ask = "the file has other names, and they may be outside (hard link)"
    place = field.machine.place("hard", str(field.root))
    assert place == Place("hard", True, "ask", "ask", ask)
    key = field.machine.place("hardkey", str(field.root))
    assert (key.reading, key.writing) == ("deny", "deny")
    field.files.write("hard", b"new")
    assert (field.root / "hard").read_bytes() == b"new"
    assert (field.base / "ws-evil/secret").read_bytes() == CANARY
    (field.root / "node_modules").mkdir()
    os.link(field.base / "ws-evil/secret", field.root / "node_modules/linked.js")
    assert field.machine.place("node_modules/linked.js", "").reading == ""


def test_a_hard_link_of_somebody_elses_is_not_read(field: Field) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(field.base / "ws-evil/secret", 12345, 12345)
    with pytest.raises(ToolError, match="belongs to somebody else"):
        field.files.read("hard")


def test_a_link_is_removed_and_renamed_itself(field: Field) -> None:
    field.files.remove("outfile")
    field.files.rename("out", "moved")
    assert not (field.root / "outfile").is_symlink()
    assert str((field.root / "moved").readlink()) == LINKS["out"]
    assert (field.base / "ws-evil/secret").read_bytes() == CANARY


def test_every_temporary_file_is_gone_and_its_name_cannot_be_known(field: Field) -> None:
    for name in (".tmp", "a.py.tmp", ".a.py.tmp", "a.py~"):
        (field.root / "src" / name).symlink_to("../../ws-evil/secret")
    before = field.kept()
    field.files.write("src/a.py", b"new")
    assert field.kept() == before
    assert sorted(path.name for path in (field.root / "src").iterdir() if path.is_file()) == [
        ".a.py.tmp",
        ".tmp",
        "a.py",
        "a.py.tmp",
        "a.py~",
    ]


def test_the_root_is_never_the_models(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that a command changed into is not the root."""
    monkeypatch.chdir(field.base / "ws-evil")
    with pytest.raises(ToolError, match="does not exist"):
        field.files.read("secret")
    assert Workspace(field.root).root == str(field.root)
