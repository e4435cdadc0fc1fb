"""Trust in a folder: bound to its real path and to what its files said."""

import json
import os
from multiprocessing import get_context

import pytest

from bridle.config.trust import FILES, POLICY, FolderFile, Trust
from bridle.errors import ConfigError


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "folder"
    (found / ".bridle").mkdir(parents=True)
    (found / POLICY).write_text("rules: []\n")
    (found / "AGENTS.md").write_text("be kind\n")
    return found


@pytest.fixture
def trust(tmp_path):
    return Trust(tmp_path / "state")


def test_nothing_is_trusted_before_somebody_says_so(trust, folder):
    assert not trust.is_trusted(folder)
    assert trust.read(folder, POLICY) is None
    assert trust.files(folder) == (
        FolderFile(POLICY, b"rules: []\n"),
        FolderFile("AGENTS.md", b"be kind\n"),
    )


def test_a_folder_is_trusted_by_whatever_name_it_is_called(trust, folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    trust.grant(tmp_path / "link")
    assert trust.is_trusted(folder)
    assert trust.read(folder, "AGENTS.md") == b"be kind\n"
    assert list(trust.folders()) == [str(folder.resolve())]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_new_or_changed_is_not_trusted_and_the_others_are(trust, folder, name):
    trust.grant(folder)
    (folder / name).write_text("obey me\n")
    assert not trust.is_trusted(folder)
    assert trust.read(folder, name) is None
    assert [one.name for one in trust.files(folder) if not one.trusted] == [name]
    other = "AGENTS.md" if name == POLICY else POLICY
    assert trust.read(folder, other) == {POLICY: b"rules: []\n", "AGENTS.md": b"be kind\n"}[other]


def test_what_is_trusted_is_what_was_shown(trust, folder):
    shown = trust.files(folder)
    (folder / "AGENTS.md").write_text("changed while they read\n")
    trust.grant(folder, shown)
    assert trust.read(folder, "AGENTS.md") is None


def test_another_folder_below_or_beside_it_is_not_trusted(trust, folder, tmp_path):
    trust.grant(folder)
    for other in (folder / ".bridle", tmp_path, tmp_path / "folder-evil"):
        other.mkdir(exist_ok=True)
        assert not trust.is_trusted(other)


def test_trust_can_be_taken_back(trust, folder):
    trust.grant(folder)
    assert trust.revoke(folder)
    assert not trust.revoke(folder)
    assert (trust.is_trusted(folder), trust.folders()) == (False, {})


def test_a_file_that_leads_out_of_the_folder_is_not_read(trust, folder, tmp_path):
    (tmp_path / "key").write_text("a secret\n")
    (folder / "CLAUDE.md").symlink_to(tmp_path / "key")
    os.mkfifo(folder / ".bridle/hooks.yaml")
    trust.grant(folder)
    problems = {one.name: bool(one.problem) for one in trust.files(folder)}
    assert problems == {
        POLICY: False,
        ".bridle/hooks.yaml": True,
        "AGENTS.md": False,
        "CLAUDE.md": True,
    }
    assert trust.read(folder, "CLAUDE.md") is None
    assert not trust.is_trusted(folder)


def test_a_file_that_nobody_would_read_is_not_trusted(trust, folder):
    (folder / "AGENTS.md").write_bytes(b"x" * 1_000_001)
    trust.grant(folder)
    assert trust.read(folder, "AGENTS.md") is None


def test_the_file_is_private_and_nothing_is_left_beside_it(trust, folder, tmp_path):
    trust.grant(folder)
    state = tmp_path / "state"
    assert state.stat().st_mode & 0o077 == 0
    assert (state / "trust.json").stat().st_mode & 0o077 == 0
    assert sorted(one.name for one in state.iterdir()) == ["trust.json", "trust.lock"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"folders": []}', '{"folders": {"/x": 1}}', "\udcff",
     '{"folders": {"/x": {"at": "", "files": {"AGENTS.md": 1}}}}', "[" * 100_000],
)  # fmt: skip
def test_a_damaged_file_trusts_nobody_and_says_so(trust, folder, tmp_path, text):
    trust.grant(folder)
    (tmp_path / "state/trust.json").write_text(text, errors="surrogateescape")
    for ask in (trust.is_trusted, trust.files, trust.grant, lambda root: trust.read(root, POLICY)):
        with pytest.raises(ConfigError, match="no folder can be trusted"):
            ask(folder)


def grant(state, folder):
    Trust(state).grant(folder)


def test_two_processes_that_trust_at_once_lose_nothing(tmp_path):
    folders = [tmp_path / f"f{number}" for number in range(6)]
    for folder in folders:
        folder.mkdir()
    spawn = get_context("fork")
    work = [spawn.Process(target=grant, args=(tmp_path / "state", one)) for one in folders]
    for one in work:
        one.start()
    for one in work:
        one.join()
    stored = json.loads((tmp_path / "state/trust.json").read_text())
    assert sorted(stored["folders"]) == sorted(map(str, folders))
