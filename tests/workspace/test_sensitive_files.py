"""What a search through a folder would give away, in a real one."""

from pathlib import Path

from bridle.workspace.machine import sensitive_files


def _make(top: Path, *names: str) -> None:
    for name in names:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def test_what_takes_care_is_found_however_deep_it_lies(tmp_path: Path) -> None:
    _make(tmp_path, "a.py", "a/b/c/.env", "a/server.pem", "a/.env.example", ".aws/x")
    _make(tmp_path, "m/.docker/config.json")
    (tmp_path / "out").symlink_to("/etc")
    assert sorted(sensitive_files(str(tmp_path)) or ()) == [
        ".aws",
        "a/b/c/.env",
        "a/server.pem",
        "m/.docker/config.json",
        "out",
    ]


def test_installed_packages_and_a_repositorys_own_folder_are_passed_over(tmp_path: Path) -> None:
    _make(tmp_path, "node_modules/x/a.pem", "v/site-packages/certifi/cacert.pem", ".git/a.key")
    assert sensitive_files(str(tmp_path)) == ()


def test_too_many_files_are_said_to_be_too_many(tmp_path: Path) -> None:
    _make(tmp_path, *(f"{n}.py" for n in range(8)))
    assert sensitive_files(str(tmp_path), 8) == ()
    assert sensitive_files(str(tmp_path), 7) is None


def test_what_is_no_folder_has_nothing_in_it(tmp_path: Path) -> None:
    _make(tmp_path, "a.py")
    assert sensitive_files(str(tmp_path / "a.py")) == ()
    assert sensitive_files(str(tmp_path / "none")) == ()
