"""Programs by their names: what lies in the workspace is not run in the place of the system's."""

import os
from pathlib import Path

import pytest

from bridle.workspace.machine import LocalMachine
from bridle.workspace.programs import find_program, path_folders
from bridle.workspace.workspace import Workspace


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return Path(os.path.realpath(tmp_path / "ws"))


def test_folders_without_an_absolute_name_or_in_a_root_are_left_out(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(root)
    given = ["", ".", "bin", f"{root}/bin", f"{tmp_path}/link", f"{root}x", "/usr/bin"]
    monkeypatch.setenv("PATH", ":".join(given))
    assert path_folders([str(root)]) == (f"{root}x", "/usr/bin")
    assert path_folders() == (f"{root}/bin", f"{tmp_path}/link", f"{root}x", "/usr/bin")


def test_a_program_is_never_taken_from_a_root_nor_by_a_link_that_leads_there(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = put(root / "bin/rg")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/rg").symlink_to(theirs)
    monkeypatch.setenv("PATH", f"{root}/bin:{tmp_path}/a:{tmp_path}/b")
    assert find_program("rg", [str(root)], (str(theirs),)) is None
    mine = put(tmp_path / "b/rg")
    assert find_program("rg", [str(root)]) == str(mine)
    assert find_program("rg") == str(theirs)


def test_a_program_is_the_workspace_s_own_where_the_path_gets_there_first(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = LocalMachine(Workspace(root), home=str(tmp_path))
    put(root / "bin/rg")
    system = put(tmp_path / "b/rg")
    monkeypatch.setenv("PATH", f"{root}/bin:{tmp_path}/b")
    assert [machine.is_local_program(name) for name in ("rg", "ls", "", "../bin/rg")] == [True] + [
        False
    ] * 3
    monkeypatch.setenv("PATH", f"{tmp_path}/b:{root}/bin")
    assert not machine.is_local_program("rg")
    system.unlink()
    assert machine.is_local_program("rg")
    monkeypatch.setenv("PATH", f"{tmp_path}/b")
    assert not machine.is_local_program("rg")
