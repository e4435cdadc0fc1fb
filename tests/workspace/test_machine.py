"""The machine under a call: where paths lead, what patterns stand for. Never raises."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridle.protocols import machine as promised
from bridle.protocols.machine import Place
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace

OWN = "it is bridle's own: settings, rules, logs"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for folder in ("ws/src/deep", "ws/new", "extra/sub", "home/.config/bridle", "tmp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ws/src/a.py").write_text("1")
    (tmp_path / "ws/src/.hidden").write_text("1")
    return tmp_path


@pytest.fixture
def machine(base: Path) -> LocalMachine:
    return LocalMachine(
        Workspace(base / "ws", also=[base / "extra"]),
        home=str(base / "home"),
        own=[base / "home/.config/bridle", base / "home/state"],
        temporary=lambda: str(base / "tmp"),
    )


def test_a_name_that_is_too_long_for_a_file_is_nobodys_and_takes_no_care(tmp_path):
    """Code that is given as one long word is looked at as a path, too."""
    place = LocalMachine(Workspace(tmp_path)).place("console.log(1);" * 30, str(tmp_path))
    assert (place.inside, place.reading, place.writing) == (True, "", "")


def test_it_keeps_the_promise(machine: LocalMachine, base: Path) -> None:
    promise: promised.Machine = machine
    assert (promise.root, promise.home) == (f"{base}/ws", f"{base}/home")


def test_a_path_is_placed_from_the_folder_it_is_named_in(machine: LocalMachine, base: Path) -> None:
    root = f"{base}/ws"
    inside = {
        ("src/a.py", root): "src/a.py",
        ("a.py", f"{root}/src"): "src/a.py",
        ("./deep/../a.py", f"{root}/src"): "src/a.py",
        (f"{root}/src/a.py", "/"): "src/a.py",
        (f"/{root}//src/./a.py", "/"): "src/a.py",
        ("src/a.py", ""): "src/a.py",
        (".", root): ".",
        ("", root): ".",
        ("..", f"{root}/src"): ".",
        ("..", f"{root}/not/yet"): "not",
        ("ws/src", str(base)): "src",
        ("not/there/yet", root): "not/there/yet",
    }
    assert {key: machine.place(*key) for key in inside} == {
        key: Place(path, True) for key, path in inside.items()
    }


def test_a_path_outside_is_placed_by_its_real_name(machine: LocalMachine, base: Path) -> None:
    root = f"{base}/ws"
    (base / "ws/link").symlink_to("../elsewhere")
    outside = {
        ("..", root): str(base),
        ("../ws-evil/x", root): f"{base}/ws-evil/x",
        (f"{base}/ws-evil", root): f"{base}/ws-evil",
        ("link/x", root): f"{base}/elsewhere/x",
        ("a", f"{root}/link"): f"{base}/elsewhere/a",
        ("/", root): "/",
        ("x", "/usr"): "/usr/x",
    }
    assert {key: machine.place(*key) for key in outside} == {
        key: Place(path, False) for key, path in outside.items()
    }


def test_another_root_is_inside_and_absolute(machine: LocalMachine, base: Path) -> None:
    assert machine.place("../extra/sub/x", f"{base}/ws") == Place(f"{base}/extra/sub/x", True)
    found = machine.place(f"{base}/extra/.git/config", "")
    assert (found.inside, found.writing) == (True, "deny")


def test_the_temporary_folder_and_what_swallows_are_temporary(
    machine: LocalMachine, base: Path
) -> None:
    (base / "ws/sink").symlink_to("/dev/null")
    (base / "tmp/leak").symlink_to("../home")
    places = ["/dev/null", "/dev/stdout", "/dev/fd/2", "/dev/urandom", f"{base}/tmp/x", "sink"]
    assert [machine.place(path, "").temporary for path in places] == [True] * 6
    others = [f"{base}/tmp/leak/x", f"{base}/tmpx", "/dev/tty", "/dev/sda", "/dev/fd/7", "/dev"]
    assert [machine.place(path, "").temporary for path in others] == [False] * 6


def test_bridles_own_folders_are_for_nobody(machine: LocalMachine, base: Path) -> None:
    home = f"{base}/home"
    (base / "ws/conf").symlink_to(f"{home}/.config/bridle")
    for path in (
        f"{home}/.config/bridle/policy.yaml",
        f"{home}/.CONFIG/Bridle/policy.yaml",
        f"{home}/state",
        f"{home}/state/sessions/x/log.jsonl",
        "conf/policy.yaml",
        "../home/state/trust.json",
    ):
        found = machine.place(path, "")
        assert (found.reading, found.writing, found.why) == ("deny", "deny", OWN)
    assert machine.place(f"{home}/state-of-things", "").reading == ""


@pytest.mark.parametrize(
    "path",
    ["src/a.py", ".env", "link", ".git/config", "{home}/.ssh/id_rsa", "/etc/shadow", "/dev/null",
     "{home}/state", "a\0b", "../outside", "conf/policy.yaml", "{tmp}/x"],
)  # fmt: skip
def test_a_place_to_read_is_as_protected_and_never_writable(
    machine: LocalMachine, base: Path, path: str
) -> None:
    (base / "ws/conf").symlink_to(f"{base}/home/.config/bridle")
    (base / "ws/link").symlink_to(".env")
    path = path.replace("{home}", f"{base}/home").replace("{tmp}", f"{base}/tmp")
    whole, to_read = machine.place(path, ""), machine.place(path, "", read_only=True)
    assert (to_read.path, to_read.inside, to_read.temporary, to_read.reading) == (
        whole.path, whole.inside, whole.temporary, whole.reading,
    )  # fmt: skip
    assert to_read.writing == "deny" or to_read.temporary


def test_a_worktree_in_the_state_folder_is_an_ordinary_root(base: Path) -> None:
    tree = base / "home/state/worktrees/w"
    tree.mkdir(parents=True)
    machine = LocalMachine(Workspace(tree), home=str(base / "home"), own=[base / "home/state"])
    assert machine.place("src/a.py", "") == Place("src/a.py", True)
    assert machine.place("../other/a.py", "").reading == "deny"
    assert machine.place("../../trust.json", "").writing == "deny"


def test_a_home_that_is_the_root_keeps_its_credentials(base: Path) -> None:
    machine = LocalMachine(Workspace(base / "home"), home=str(base / "home"))
    assert machine.place(".ssh/id_rsa", "").reading == "deny"
    assert machine.place("project/.env", "").reading == "ask"
    assert machine.place("project/a.py", "") == Place("project/a.py", True)


def test_the_care_of_every_name_on_the_way_counts(machine: LocalMachine, base: Path) -> None:
    (base / "ws/.env").symlink_to("src/a.py")
    (base / "ws/plain").symlink_to(".env")
    (base / "ws/.git").mkdir()
    (base / "ws/.git/hooks").symlink_to("../src")
    assert machine.place(".env", "").reading == "ask"
    assert machine.place("plain", "").reading == "ask"
    assert machine.place(".git/hooks/a.py", "").writing == "deny"


def test_the_config_of_a_bare_repository_is_protected(machine: LocalMachine, base: Path) -> None:
    bare = base / "ws/plain"
    (bare / "objects").mkdir(parents=True)
    assert machine.place("plain/config", "").writing == ""
    (bare / "HEAD").write_text("ref: refs/heads/main")
    for path in ("plain/config", "plain/hooks/update", "plain/CONFIG"):
        assert machine.place(path, "").writing == "deny"
    assert machine.place("plain/readme", "").writing == ""


@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/root/etc/passwd",
        "/proc/self/root/../../etc/passwd",
        "/proc/self/cwd/x",
        "/proc/self/fd/3",
        "/proc/thread-self/cwd",
        "/proc/self/environ",
        "/proc/1/environ",
        "/proc/self/../self/root/x",
        "/proc/self/../../proc/self/environ",
        "/proc/self/../../etc/shadow",
        "/dev/fd/9",
        "/usr/../etc/shadow",
    ],
)
def test_what_the_kernel_shows_of_processes_is_for_nobody(machine: LocalMachine, path: str) -> None:
    found = machine.place(path, "")
    assert (found.inside, found.reading, found.writing) == (False, "deny", "deny")


def test_what_is_no_path_is_for_nobody(machine: LocalMachine) -> None:
    for path in ("a\0b", "\ud800", "x" * 100_000):
        found = machine.place(path, "")
        assert (found.inside, found.reading, found.writing) == (False, "deny", "deny")
    assert machine.place("a", "relative").reading == "deny"


def test_what_cannot_be_looked_at_is_asked_about() -> None:
    """Root may look at everything, so root becomes nobody for the moment."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "locked").mkdir(mode=0o700)
        machine = LocalMachine(Workspace(folder), home="/nonexistent")
        Path(folder, "locked").chmod(0)
        before = os.geteuid()
        os.seteuid(65534 if before == 0 else before)
        try:
            found = machine.place("locked/x/y", "")
        finally:
            os.seteuid(before)
        Path(folder, "locked").chmod(0o700)
        assert found == Place("locked/x/y", True, "ask", "ask", "it cannot be looked at")


ANY = st.one_of(
    st.text(max_size=30),
    st.lists(
        st.sampled_from(
            ["..", ".", "", "src", "a.py", "link", "loop", "/", "proc", "self", "root"]
        ),
        max_size=8,
    ).map("/".join),
)


@given(path=ANY, cwd=ANY)
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_words_get_a_place_that_is_true(base: Path, path: str, cwd: str) -> None:
    """Never raises; what is inside and certain is where the system itself would go."""
    for name, target in {"link": "../extra", "loop": "loop"}.items():
        if not (base / "ws" / name).is_symlink():
            (base / "ws" / name).symlink_to(target)
    machine = LocalMachine(Workspace(base / "ws"), home=str(base / "home"))
    found = machine.place(path, f"{base}/ws/{cwd}")
    assert isinstance(machine.is_repository_safe(cwd), bool)
    assert machine.expand(path, cwd) is None or path
    if found.inside and not found.why:
        whole = path if path.startswith("/") else f"{base}/ws/{cwd}/{path}"
        assert os.path.realpath(whole) == os.path.normpath(f"{base}/ws/{found.path}")
