"""Which paths are protected, by their names alone, in any case or Unicode form.

Pure. Names are compared, not files, so that a protected file is protected before it exists. Knows
nothing of links: the caller (`workspace/machine.py`) follows them, and asks for each name on the
way.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

from bridle.protocols.machine import Restriction

# The protected names, as data.


class Group(NamedTuple):
    """Patterns that are protected in the same way, for the same reason, which a person is shown.

    White space separates the patterns. A `+` in a pattern stands for a space in a name.
    """

    why: str
    reading: Restriction
    writing: Restriction
    patterns: str


# Names, and pairs of names, anywhere below the folder of a repository (`.git`, `name.git`): they
# make git run programs, or lead it to another repository that does.
GIT_RUNS = (
    "config config.worktree config.lock hooks commondir gitdir worktrees "
    "rebase-merge rebase-apply sequencer"
)
GIT_RUNS_BELOW = frozenset(
    [("info", "attributes"), ("info", "alternates"), ("info", "http-alternates")]
)
GIT_WHY = "it makes git run programs, or leads it elsewhere"
GIT_FILES_WHY = "it is git's own file"

INSIDE = (
    Group("it is one of bridle's own files", "", "deny", ".bridle/**"),
    Group(
        "it makes version control run programs",
        "",
        "deny",
        ".hg/hgrc .jj/repo/config.toml .gitconfig",
    ),
    Group("it is version control's own file", "", "ask", ".hg/** .jj/** .svn/** .bzr/**"),
    Group(
        "it holds credentials",
        "ask",
        "ask",
        ".env .env.* *.env .env-* .env_* *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.kdb "
        "*.ppk *.p8 *.ovpn id_rsa* id_dsa* id_ecdsa* id_ed25519* .netrc _netrc .pgpass "
        ".my.cnf .npmrc .pypirc .git-credentials .htpasswd .vault-token .vault-pass* .dockercfg "
        ".docker/config.json .kube/** kubeconfig *.kubeconfig .ssh/** .aws/** .azure/** .gnupg/** "
        ".config/gcloud/** .s3cfg .boto credentials* .credentials* secrets.yml secrets.yaml "
        "secrets.json secrets.toml secrets.env .secrets .secrets.* *.tfvars terraform.tfstate "
        "terraform.tfstate.backup .terraformrc .authinfo .authinfo.gpg client_secret*.json "
        "service-account*.json service_account*.json gha-creds-*.json *.agekey age.key",
    ),
    Group(
        "it runs in continuous integration",
        "",
        "ask",
        ".github/workflows/** .github/actions/** .gitlab-ci.yml .gitlab-ci.yaml .gitlab/ci/** "
        ".circleci/** .travis.yml .drone.yml .drone.yaml .woodpecker/** .woodpecker.yml "
        ".woodpecker.yaml .buildkite/** .forgejo/workflows/** .gitea/workflows/** .teamcity/** "
        ".cirrus.yml appveyor.yml .appveyor.yml azure-pipelines.yml azure-pipelines.yaml "
        "bitbucket-pipelines.yml jenkinsfile cloudbuild.yaml buildspec.yml .semaphore/**",
    ),
    Group(
        "an editor or another agent runs what it says",
        "",
        "ask",
        ".vscode/** .vscode-insiders/** .idea/** .fleet/** .zed/** .vs/** *.code-workspace "
        ".devcontainer/** .devcontainer.json .nvim.lua .nvimrc .exrc .vimrc .lvimrc .dir-locals.el "
        ".mcp.json mcp.json .claude/** .claude.json .cursor/** .cursorrules .codex/** .gemini/** "
        ".windsurf/** .continue/** .aider.conf.yml .roo/** .clinerules/** .kiro/** .opencode/** "
        "opencode.json .amazonq/** .junie/**",
    ),
    Group(
        "it runs by itself when somebody works in the folder",
        "",
        "ask",
        ".envrc .direnv/** .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml "
        ".husky/** lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml .lefthook/** .mise.toml "
        ".mise/** .rtx.toml .gitattributes .gitmodules .yarnrc .yarnrc.yml .pnpmfile.cjs "
        ".cargo/config.toml .cargo/config .bazelrc .gdbinit .lldbinit sitecustomize.py "
        "usercustomize.py site-packages/*.pth .bashrc .bash_profile .bash_login "
        ".bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout "
        ".config/fish/** .config/git/** "
        ".config/autostart/** .config/systemd/** .ripgreprc .inputrc .screenrc .tmux.conf",
    ),
)

# Names that look like credentials and are not.
HARMLESS = (
    ".env*.example .env*-example .env*.sample .env*.template .env*.dist .env*.tpl .env*.schema "
    "example.env sample.env template.env id_*.pub *.tfvars.example"
)
# `credentials.py` is a program, not a credential.
SOURCE = (
    "c cc cpp cs css dart ex exs go h hpp html java js jsx kt md mjs mts php py pyi rb rs rst "
    "scala svelte swift ts tsx vue"
)

HOME = (
    Group(
        "it holds your credentials",
        "deny",
        "deny",
        ".ssh/** .aws/** .azure/** .config/gcloud/** .kube/** .docker/config.json .dockercfg "
        ".netrc _netrc .gnupg/** .password-store/** .pgpass .my.cnf .mylogin.cnf .git-credentials "
        ".config/git/credentials .npmrc .yarnrc.yml .pypirc .cargo/credentials "
        ".cargo/credentials.toml .gem/credentials .bundle/config .config/gh/** .config/hub "
        ".config/glab-cli/** .config/op/** .config/rclone/** .config/doctl/** .config/hcloud/** "
        ".config/helm/** .config/sops/** .config/containers/auth.json .terraform.d/** "
        ".terraformrc .vault-token .s3cfg .boto .databrickscfg .oci/** .snowflake/** "
        ".m2/settings.xml .gradle/gradle.properties .composer/auth.json .config/composer/auth.json "
        ".authinfo .authinfo.gpg .fly/** .config/heroku/** .config/netlify/** "
        ".local/share/com.vercel.cli/** .wrangler/** .config/.wrangler/** "
        ".claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json "
        ".config/github-copilot/** .local/share/opencode/auth.json "
        ".huggingface/** .cache/huggingface/token .kaggle/** .config/age/** .age/** .putty/**",
    ),
    Group(
        "it is where your passwords are kept",
        "deny",
        "deny",
        ".local/share/keyrings/** .local/share/kwalletd/** .kde/share/apps/kwallet/** "
        ".config/keepassxc/** .config/1password/** .config/bitwarden/** "
        ".config/bitwarden+cli/** library/keychains/** .bitcoin/** .ethereum/** .electrum/** "
        ".config/solana/** .config/signal/** .xauthority .iceauthority",
    ),
    Group(
        "it is a browser's or a mail program's own folder",
        "deny",
        "deny",
        ".mozilla/** .thunderbird/** .config/google-chrome/** .config/google-chrome-beta/** "
        ".config/chromium/** .config/bravesoftware/** .config/microsoft-edge/** .config/opera/** "
        ".config/vivaldi/** .librewolf/** .waterfox/** snap/firefox/** snap/chromium/** "
        ".var/app/org.mozilla.firefox/** .var/app/com.google.chrome/** library/cookies/** "
        "library/safari/** library/mail/** library/messages/** "
        "library/application+support/google/chrome/** library/application+support/firefox/** "
        "library/application+support/bravesoftware/** "
        "library/application+support/microsoft+edge/** library/application+support/1password/**",
    ),
    Group(
        "it is a history of what you typed",
        "deny",
        "deny",
        ".bash_history .zsh_history .histfile .sh_history .ash_history .python_history "
        ".psql_history .mysql_history .sqlite_history .node_repl_history .irb_history "
        ".rediscli_history .local/share/fish/fish_history .lesshst .viminfo "
        ".zsh_sessions/** .wget-hsts",
    ),
)

SYSTEM = (
    Group(
        "it holds the system's credentials",
        "deny",
        "deny",
        "etc/shadow etc/shadow- etc/gshadow etc/gshadow- etc/sudoers etc/sudoers.d/** "
        "etc/ssl/private/** etc/pki/tls/private/** etc/ssh/ssh_host_*_key etc/krb5.keytab "
        "etc/letsencrypt/** etc/wireguard/** etc/kubernetes/** etc/rancher/** etc/security/opasswd "
        "var/lib/sss/** var/run/secrets/** run/secrets/** run/credentials/** "
        "private/etc/master.passwd private/var/db/dslocal/** library/keychains/**",
    ),
    Group(
        "it is a way into a running process or the kernel",
        "deny",
        "deny",
        "proc/*/environ proc/*/mem proc/*/root/** proc/*/cwd/** proc/*/fd/** proc/*/fdinfo/** "
        "proc/*/exe proc/*/map_files/** proc/*/task/** proc/*/ns/** proc/*/auxv proc/*/maps "
        "proc/*/pagemap proc/*/cmdline proc/kcore proc/kmem proc/sysrq-trigger proc/kpagecount "
        "proc/sys/kernel/core_pattern sys/kernel/debug/** sys/fs/cgroup/*/release_agent",
    ),
    Group(
        "it is a raw device",
        "deny",
        "deny",
        "dev/mem dev/kmem dev/port dev/kmsg dev/sd* dev/hd* dev/vd* dev/xvd* dev/nvme* dev/mmcblk* "
        "dev/dm-* dev/mapper/** dev/disk/** dev/loop* dev/md* dev/sr* dev/fd0 dev/input/** "
        "dev/disk* dev/rdisk* dev/bpf* dev/kvm dev/fuse",
    ),
    Group(
        "it is a connection to somebody who acts for you",
        "deny",
        "deny",
        "run/docker.sock var/run/docker.sock run/containerd/** run/podman/** run/user/*/keyring/** "
        "run/user/*/gnupg/** run/user/*/bus run/dbus/** var/run/dbus/** run/systemd/private",
    ),
    Group("bash makes a network connection of it", "ask", "ask", "dev/tcp/** dev/udp/**"),
)

_RANKS: dict[Restriction, int] = {"": 0, "ask": 1, "deny": 2}
_GIT_RUNS = frozenset(GIT_RUNS.split())
_SOURCE = frozenset(SOURCE.split())
_SHORT_NAMES = {"git~1": ".git", "git~2": ".git"}  # what one system also calls `.git`


class Protection(NamedTuple):
    """Whether a path may be read and written, and why not, as a person is told."""

    reading: Restriction = ""
    writing: Restriction = ""
    why: str = ""

    def plus(self, other: "Protection") -> "Protection":
        """Return the stricter one of both for each; the reason of the one that restricts more."""
        if other == FREE:
            return self
        if self == FREE:
            return other
        reading = max(self.reading, other.reading, key=_RANKS.__getitem__)
        writing = max(self.writing, other.writing, key=_RANKS.__getitem__)
        return Protection(reading, writing, max(self, other, key=Protection._rank).why)

    def _rank(self) -> int:
        return _RANKS[self.reading] + _RANKS[self.writing]


FREE = Protection()


@cache
def _ignorable() -> re.Pattern[str]:
    """What Unicode calls default-ignorable: some file systems compare names without it."""
    return re.compile(
        "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
        "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
        "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    )


@lru_cache(maxsize=1024)
def fold(name: str) -> str:
    """Return a name as the most forgiving file system would compare it."""
    if name.isascii():
        name = name.lower()
    else:
        fold_path = normalize("NFKC", normalize("NFKC", name).casefold()).casefold()
        name = _ignorable().sub("", fold_path)
    name = name.partition(":")[0].rstrip(". ")  # streams, and ends that one system drops
    return _SHORT_NAMES.get(name, name)


@lru_cache(maxsize=1024)
def fold_path(path: str) -> str:
    """Return a path with each of its names fold_path."""
    return "/".join(map(fold, path.split("/")))


class _Name(NamedTuple):
    """A name with at most one `*`."""

    start: str
    end: str
    has_star: bool

    def matches(self, name: str) -> bool:
        if not self.has_star:
            return name == self.start
        long_enough = len(name) >= len(self.start) + len(self.end)
        return long_enough and name.startswith(self.start) and name.endswith(self.end)


def _parse_name(text: str) -> _Name:
    start, star, end = text.replace("+", " ").partition("*")
    return _Name(start, end, bool(star))


class _Pattern(NamedTuple):
    """The names of a path; with `is_folder`, everything below it is protected as well."""

    path: tuple[_Name, ...]
    is_folder: bool
    protection: Protection

    def protection_of(self, names: Sequence[str]) -> Protection:
        """Return what the pattern says of a path of these names."""
        if len(names) > len(self.path) and not self.is_folder:
            return FREE
        if not all(map(_Name.matches, self.path, names)):
            return FREE
        if len(names) >= len(self.path):
            return self.protection
        # A folder on the way to a protected path: replacing it replaces that path as well.
        return Protection("", "ask", self.protection.why)


class _Table:
    """Patterns, found by their first name."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self.named: dict[str, list[_Pattern]] = {}
        self.starred: list[_Pattern] = []
        for group in groups:
            protection = Protection(group.reading, group.writing, group.why)
            for text in group.patterns.split():
                path = tuple(map(_parse_name, text.removesuffix("/**").split("/")))
                pattern = _Pattern(path, text.endswith("/**"), protection)
                if path[0].has_star:
                    self.starred.append(pattern)
                else:
                    self.named.setdefault(path[0].start, []).append(pattern)
        heads = [pattern.path[0] for pattern in self.starred]
        self.starts = tuple(head.start for head in heads if head.start)
        self.ends = tuple(head.end for head in heads if not head.start)

    def protection_of(self, names: Sequence[str]) -> Protection:
        """Return what the patterns say of a path that begins with these fold_path names."""
        protection = FREE
        for pattern in self.named.get(names[0], ()):
            protection = protection.plus(pattern.protection_of(names))
        last = names[0] if len(names) == 1 else ""  # no pattern for a folder begins with a star
        if last.startswith(self.starts) or last.endswith(self.ends):
            for pattern in self.starred:
                protection = protection.plus(pattern.protection_of(names))
        return protection


_inside = cache(lambda: _Table(INSIDE))  # made when they are first needed: 1 ms each
_home = cache(lambda: _Table(HOME))
_system = cache(lambda: _Table(SYSTEM))


@lru_cache(maxsize=1024)
def protection_of(path: str) -> Protection:
    """Return the protection of a path from the root of a workspace, with `/` between names."""
    names = [fold(part) for part in path.split("/") if part not in ("", ".")]
    total = FREE
    for index, name in enumerate(names):
        if name.endswith(".git"):
            total = total.plus(_git_protection(names[index + 1 :], is_own=name == ".git"))
        protection = _inside().protection_of(names[index:])
        if protection is not FREE and not (index == len(names) - 1 and _is_harmless(name)):
            total = total.plus(protection)
    return total


@cache
def _harmless_names() -> tuple[_Name, ...]:
    return tuple(map(_parse_name, HARMLESS.split()))


def _is_harmless(name: str) -> bool:
    if any(pattern.matches(name) for pattern in _harmless_names()):
        return True
    stem, _, suffix = name.rpartition(".")
    return suffix in _SOURCE and stem.startswith(("credentials", ".credentials"))


def _git_protection(below: Sequence[str], *, is_own: bool) -> Protection:
    """Return the protection of names below `.git`, or below `x.git`, which may be any folder."""
    if not (_GIT_RUNS.isdisjoint(below) and GIT_RUNS_BELOW.isdisjoint(pairwise(below))):
        return Protection("", "deny", GIT_WHY)
    if not is_own:
        return FREE
    return Protection("", "ask" if below else "deny", GIT_FILES_WHY)


@lru_cache(maxsize=1024)
def possible_repositories(path: str) -> tuple[str, ...]:
    """Return the folders that may be bare repositories, with this path as `config` or a hook."""
    names = path.split("/")
    return tuple(
        "/".join(names[:index]) for index, name in enumerate(names) if fold(name) in _GIT_RUNS
    )


@lru_cache(maxsize=1024)
def machine_protection(path: str, home: str) -> Protection:
    """Return the protection of a real absolute path anywhere on the machine.

    `home` is the person's home folder; those of other people are protected as well.
    """
    names = [fold(part) for part in path.split("/") if part]
    if not names:
        return FREE
    total = _system().protection_of(names)
    own = [fold(part) for part in home.split("/") if part]
    depths = [len(own)] if names[: len(own)] == own else []  # how many names a home folder has
    if names[0] in ("home", "users") or names[:2] == ["var", "root"]:
        depths.append(2)
    elif names[0] == "root":
        depths.append(1)
    for depth in depths:
        if len(names) > depth:
            total = total.plus(_home().protection_of(names[depth:]))
    return total


def home_credential_paths() -> list[str]:
    """Return the paths below a home folder that hold credentials, without those with a `*`."""
    return _exact_paths(HOME)


def system_credential_paths() -> list[str]:
    """Return the paths of the system that hold credentials, from the top, without a `*`."""
    return _exact_paths(SYSTEM[:1])


def _exact_paths(groups: Iterable[Group]) -> list[str]:
    patterns = [text.removesuffix("/**") for group in groups for text in group.patterns.split()]
    return [text.replace("+", " ") for text in patterns if "*" not in text]
