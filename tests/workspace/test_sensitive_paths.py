"""Names that take care: by their words alone, in any folder, case and form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.workspace.sensitive_paths import (
    FREE,
    HOME,
    INSIDE,
    SYSTEM,
    Protection,
    fold,
    machine_protection,
    possible_repositories,
    protection_of,
)

HOME_FOLDER = "/people/ann"


def restrictions(path: str) -> tuple[str, str]:
    found = protection_of(path)
    return found.reading, found.writing


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/config",
        ".git/config.worktree",
        ".git/hooks",
        ".git/hooks/pre-commit",
        ".git/modules/lib/config",
        ".git/modules/lib/hooks/post-checkout",
        ".git/commondir",
        ".git/worktrees/w/gitdir",
        ".git/info/attributes",
        ".git/objects/info/alternates",
        ".git/rebase-merge/git-rebase-todo",
        "sub/dir/.git/hooks/post-index-change",
        "mirror.git/config",
        "mirror.git/hooks/update",
        ".bridle",
        ".bridle/policy.yaml",
        "sub/.bridle/hooks.yaml",
        ".hg/hgrc",
        ".gitconfig",
    ],
)
def test_what_makes_programs_run_is_never_written(path: str) -> None:
    assert restrictions(path) == ("", "deny")
    assert protection_of(path).why


@pytest.mark.parametrize(
    "path",
    [
        ".git/HEAD",
        ".git/index",
        ".git/refs/heads/main",
        ".git/info/exclude",
        ".github",
        ".github/workflows",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        ".circleci/config.yml",
        ".vscode/tasks.json",
        ".vscode/new/deep.json",
        ".idea/workspace.xml",
        ".envrc",
        ".pre-commit-config.yaml",
        ".husky/pre-push",
        ".gitattributes",
        "deep/er/.gitmodules",
        ".mcp.json",
        ".claude/settings.json",
        ".cursor/rules/a.md",
        ".devcontainer/devcontainer.json",
        ".cargo/config.toml",
        "lib/site-packages/x.pth",
        "Jenkinsfile",
        ".bashrc",
    ],
)
def test_what_runs_by_itself_is_written_by_a_person_alone(path: str) -> None:
    assert restrictions(path) == ("", "ask")


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".env.local",
        ".env.production",
        "prod.env",
        "api/.env",
        "server.pem",
        "tls/server.key",
        "id_rsa",
        "id_rsa.old",
        "keys/id_ed25519",
        ".npmrc",
        ".pypirc",
        ".netrc",
        "credentials",
        "credentials.json",
        "my/credentials.yml",
        "store.p12",
        "vault.kdbx",
        ".ssh/config",
        ".aws/credentials",
        ".git-credentials",
        "terraform.tfstate",
    ],
)
def test_credentials_are_read_and_written_by_a_person_alone(path: str) -> None:
    assert restrictions(path) == ("ask", "ask")


@pytest.mark.parametrize(
    "path",
    [
        "src/main.py",
        ".",
        "README.md",
        ".gitignore",
        ".env.example",
        ".env.sample",
        ".env.template",
        ".env.production.example",
        ".env/bin/python",
        "src/credentials.py",
        "src/credentials/model.py",
        "docs/credentials.md",
        "id_rsa.pub",
        ".github/ISSUE_TEMPLATE.md",
        "git/config",
        "config",
        "src/hooks/useThing.ts",
        "keys.py",
        "environment.yml",
        "AGENTS.md",
        "package.json",
        "model.pth",
    ],
)
def test_ordinary_names_take_no_care(path: str) -> None:
    assert protection_of(path) == FREE


@pytest.mark.parametrize(
    "name",
    [
        ".GIT",
        ".Git",
        ".git.",
        ".git ",
        ".git. . ",
        ".git::$INDEX_ALLOCATION",
        ".git:x",
        "GIT~1",
        ".g\u200cit",
        ".\u200bgit",
        ".gi\u00adt",
        ".gi\ufe0ft",
        ".gi\U000e0001t",
        "\uff0egit",
        ".\uff47\uff49\uff54",
        ".\u24d6it",
        ".g\u2060it\ufeff",
    ],
)
def test_another_form_of_a_name_is_that_name(name: str) -> None:
    assert protection_of(f"a/{name}/hooks/pre-commit").writing == "deny"
    assert protection_of(f"{name}/CONFIG").writing == "deny"


@pytest.mark.parametrize(
    "name", [".ENV", ".Env.Local", ".e\u200dnv", ".env.", ".\uff45nv", "ID_RSA"]
)
def test_another_form_of_a_credential_is_that_credential(name: str) -> None:
    assert restrictions(f"a/{name}") == ("ask", "ask")


@pytest.mark.parametrize(
    "path",
    [
        "/people/ann/.ssh/id_rsa",
        "/people/ann/.ssh",
        "/people/ann/.SSH/id_rsa",
        "/people/ann/.aws/credentials",
        "/people/ann/.config/gcloud/x.db",
        "/people/ann/.docker/config.json",
        "/people/ann/.netrc",
        "/people/ann/.mozilla/firefox/p/logins.json",
        "/people/ann/.local/share/keyrings/login.keyring",
        "/people/ann/.bash_history",
        "/people/ann/Library/Keychains/login.keychain-db",
        "/people/ann/Library/Application Support/Google/Chrome/Default/Cookies",
        "/root/.ssh/id_rsa",
        "/home/bob/.aws/config",
        "/Users/bob/.netrc",
        "/etc/shadow",
        "/etc/sudoers.d/x",
        "/etc/ssh/ssh_host_rsa_key",
        "/proc/1/environ",
        "/proc/self/mem",
        "/proc/self/root/etc/passwd",
        "/proc/4242/fd/3",
        "/dev/sda",
        "/dev/nvme0n1p1",
        "/dev/mem",
        "/run/docker.sock",
    ],
)
def test_credentials_outside_are_for_nobody(path: str) -> None:
    found = machine_protection(path, HOME_FOLDER)
    assert (found.reading, found.writing) == ("deny", "deny")
    assert found.why


@pytest.mark.parametrize(
    "path", ["/", "/etc/hosts", "/usr/lib/x", "/people/ann/notes", "/home/bob"]
)
def test_other_places_outside_take_no_care_of_their_own(path: str) -> None:
    assert machine_protection(path, HOME_FOLDER) == FREE


def test_a_connection_that_bash_would_open_is_asked_about() -> None:
    assert machine_protection("/dev/tcp/host/80", "/h").reading == "ask"


def test_the_stricter_protection_wins_for_reading_and_for_writing() -> None:
    assert Protection("ask", "", "a").plus(Protection("", "deny", "b")) == Protection(
        "ask", "deny", "b"
    )
    assert FREE.plus(Protection("", "ask", "b")) == Protection("", "ask", "b")


def test_folders_that_a_config_would_make_repositories_are_named() -> None:
    assert possible_repositories("/a/config") == ("/a",)
    assert possible_repositories("/a/hooks/x/config") == ("/a", "/a/hooks/x")
    assert possible_repositories("/config") == ("",)
    assert possible_repositories("/a/b.py") == ()


def test_the_tables_are_written_as_names_are_folded_and_have_reasons() -> None:
    for group in (*INSIDE, *HOME, *SYSTEM):
        assert group.why
        for pattern in group.patterns.split():
            for part in pattern.removesuffix("/**").replace("+", " ").split("/"):
                assert part == fold(part), pattern
                assert part.count("*") <= 1, pattern


FORMS = st.sampled_from([str.upper, str.lower, str.title, str.swapcase])
INVISIBLE = st.sampled_from(["", "\u200b", "\u200d", "\ufe0f", "\u2060", "\u00ad", "\U000e0020"])


@given(
    path=st.sampled_from([".git/config", ".bridle/x", ".env", ".vscode/x", "id_rsa"]),
    form=FORMS,
    hidden=INVISIBLE,
    at=st.integers(0, 8),
    above=st.lists(st.text("abc", min_size=1), max_size=3),
)
def test_no_form_of_a_protected_name_takes_less_care(
    path: str, form: "st.DrawFn", hidden: str, at: int, above: list[str]
) -> None:
    other = "/".join([*above, form(path[:at] + hidden + path[at:])])
    assert protection_of(other)[:2] == protection_of(path)[:2]


@given(st.text(max_size=60))
def test_any_text_has_some_care(text: str) -> None:
    assert isinstance(protection_of(text), Protection)
    assert isinstance(machine_protection(text, HOME_FOLDER), Protection)
    assert fold(fold(text)) == fold(text)
