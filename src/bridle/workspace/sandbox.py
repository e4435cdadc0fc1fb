"""The sandbox: how a command is started so that it can do only what it was allowed to do.

There are two levels: `bubblewrap`, if a trial run works, and `landlock`, if the kernel has it. Both
let a command write the workspace and its own temporary folder, read the system and tool chains, and
nothing else: not the home folder, not bridle's own files, no network, no other process. If there is
neither, the level is `none`, with the reason. Whether a command may run is decided by the gate.

At `landlock` a command can create no sockets but connected pairs: through one with a name it could
reach the session's bus, a terminal multiplexer or a container daemon, and with them do anything.
"""

import marshal
import os
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from bridle.errors import ConfigError
from bridle.workspace import bubblewrap, seccomp
from bridle.workspace.fs import is_below, private_folder
from bridle.workspace.git.paths import GitConfiguration
from bridle.workspace.git.worktree import WORKTREE_FILES, LinkedRepository, linked_repository
from bridle.workspace.programs import SHELLS
from bridle.workspace.sensitive_paths import home_credential_paths, system_credential_paths

# Landlock: what a process and its children may do with files. Kernels differ in what they handle.

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES = 1 << 6 | 1 << 11  # never allowed
_ALL = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_TCP = 3  # bind, connect
_SCOPES = 3  # abstract sockets, signals
OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL

_CREATE = 444  # the number of `landlock_create_ruleset` on every machine
_ASK_VERSION = 1

Ruleset = tuple[bytes, list[tuple[str, int]]]


@cache
def version() -> int:
    """Return the version of Landlock in this kernel, 0 if there is none or it is off."""
    if sys.platform != "linux":
        return 0
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    return max(int(number), 0)


def ruleset(
    readable: Iterable[str],
    writable: Iterable[str],
    devices: Iterable[str],
    *,
    network: bool,
    abi: int,
) -> Ruleset:
    """Return what is handled, as the kernel wants it, and the rights that each path has."""
    handled = _handled_rights(abi)
    reads = (_EXECUTE | _READ | _LIST) & handled
    writes = handled & ~_MAKE_DEVICES & ~_IOCTL
    uses = (_READ | _WRITE | _TRUNCATE | _IOCTL) & handled
    rules = [(path, reads) for path in readable]
    rules += [(path, writes) for path in writable]
    rules += [(path, uses) for path in devices]
    fields = [handled]
    if abi >= 4:
        fields.append(0 if network else _TCP)
    if abi >= 6:
        fields.append(_SCOPES)
    return struct.pack(f"{len(fields)}Q", *fields), rules


def _handled_rights(abi: int) -> int:
    rights = _ALL
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL)):
        if abi >= since:
            rights |= right
    return rights


# What a confined command may read besides the workspace: the system, and tool chains.

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/sys"),
    *("/nix", "/gnu/store", "/snap", "/home/linuxbrew/.linuxbrew", "/var/lib/alternatives"),
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
NAME_SERVICES = ("/run/systemd/resolve", "/run/resolvconf", "/run/nscd")  # with the network

# below the home folder
_TOOL_CHAINS = (
    *(".pyenv", ".rustup", ".nvm", "go", ".asdf", ".rbenv", ".rvm", ".sdkman", ".volta", ".bun"),
    *(".deno", ".ghcup", ".opam", ".dotnet", ".jenv", ".nodenv", ".goenv", ".juliaup", ".julia"),
    *("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda/envs"),
    *(".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/env", ".cargo/config.toml"),
    *(".m2/repository", ".gradle/wrapper", ".gradle/caches", ".gem/ruby", ".nuget/packages"),
    *(".local/bin", ".local/lib", ".local/share/uv", ".local/share/mise", ".local/share/pnpm"),
    *(".local/share/pipx", ".local/share/virtualenvs", ".local/share/fnm", ".local/pipx", "bin"),
    *(".cache/pip", ".cache/uv", ".cache/pypoetry", ".cache/pre-commit", ".cache/go-build"),
    *(".cache/ms-playwright", ".cache/yarn", ".cache/pnpm", ".cache/deno", ".cache/node"),
    *(".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"),
)
_VARIABLES = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT"),
    *("RUSTUP_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)


def system_folders(as_root: bool) -> Iterator[str]:
    """Yield the folders of the system that exist. For root, /etc is given without its secrets."""
    for folder in SYSTEM:
        if as_root and folder == "/etc":
            yield from _entries_except("/etc", secret_system_files())
        elif os.access(folder, os.F_OK):
            yield folder


def secret_system_files() -> tuple[str, ...]:
    """Return what root can read in /etc, and a confined command must not."""
    paths = (f"/{part}" for part in system_credential_paths() if part.startswith("etc/"))
    return tuple(path for path in (*paths, "/etc/ssh") if os.access(path, os.F_OK))


def _entries_except(folder: str, secret: Sequence[str]) -> Iterator[str]:
    """Yield what is in a folder, path by path, without what is secret."""
    for entry in sorted(Path(folder).iterdir()):
        path = str(entry)
        if path in secret:
            continue
        if any(is_below(other, path) for other in secret):
            yield from _entries_except(path, secret)
        else:
            yield path


def tool_chains(environment: Mapping[str, str], hidden: Iterable[str]) -> list[str]:
    """Return the tool chains that exist, without any that has the home folder or a secret in it."""
    home = os.path.realpath(environment.get("HOME") or Path.home())
    paths = [f"{home}/{part}" for part in _TOOL_CHAINS]
    paths += [environment.get(name, "") for name in _VARIABLES]
    paths += [sys.prefix, sys.base_prefix, sys.exec_prefix]
    paths += [path for path in sys.path if path.endswith(("/site-packages", "/dist-packages"))]
    paths += environment.get("PATH", "").split(":")
    secret = [home, *credential_paths(environment), *hidden]
    chains: dict[str, None] = {}
    for path in filter(os.path.isabs, paths):
        real = os.path.realpath(path)
        exposes = real == "/" or any(is_below(other, real) for other in secret)
        if not exposes and os.access(real, os.F_OK):
            chains |= {real: None, os.path.normpath(path): None}  # also by its other name
    return [*chains]


def credential_paths(environment: Mapping[str, str]) -> list[str]:
    """Return the paths that hold the person's keys and passwords, those that exist."""
    home = os.path.realpath(environment.get("HOME") or Path.home())
    return [
        path for part in home_credential_paths() if os.access(path := f"{home}/{part}", os.F_OK)
    ]


Level = Literal["bubblewrap", "landlock", "none"]
VARIABLE = "BRIDLE_SANDBOX"
AUTO = "auto"  # the best level that there is, which is also the default
_SCRIPT = str(Path(__file__).with_name("supervise.py"))
_READ_ONLY = (".git/hooks", ".git/info", ".git/config", ".bridle")  # in the root


class ProbeResult(NamedTuple):
    """The level that commands can run at here, and why."""

    level: Level
    why: str


class Start(NamedTuple):
    """What is really executed, and the handles that it inherits besides the caller's own.

    `has_namespace`: everything that it starts ends with it, and it ends with bridle. Otherwise
    `supervise.py` ends everything, when its lifeline says so.
    """

    argv: list[str]
    handles: tuple[int, ...] = ()
    has_namespace: bool = False


@cache
def probe(wanted: str = "") -> ProbeResult:
    """Find the best level, or check the one that is wanted. Cached; takes 10 ms the first time.

    Raise `ConfigError` if a person asked for a level by name that cannot be used.
    """
    if wanted == AUTO:
        return probe()
    if wanted not in ("", *get_args(Level)):
        raise ConfigError(
            f"There is no sandbox named {wanted!r}.",
            hint="Choose auto, bubblewrap, landlock or none.",
        )
    if wanted == "none":
        return ProbeResult("none", "it was switched off")
    reasons: list[str] = []
    landlock = _probe_landlock if wanted else _probe_landlock_as_default
    for level, probe_level in (("bubblewrap", _probe_bubblewrap), ("landlock", landlock)):
        if wanted in ("", level):
            result = probe_level()
            if result.level != "none":
                return result
            reasons.append(result.why)
    why = "; ".join(reasons)
    if wanted:
        raise _unusable(wanted, why)
    return ProbeResult("none", why)


def _unusable(wanted: str, why: str) -> ConfigError:
    return ConfigError(
        f"The sandbox {wanted} cannot be used: {why}.",
        hint=f"Set {VARIABLE} to auto for the best that there is, or set it to none.",
    )


def _probe_bubblewrap() -> ProbeResult:
    if seccomp.machine() is None:
        return ProbeResult("none", "no system calls are known for this machine")
    problem = bubblewrap.problem()
    if problem:
        return ProbeResult("none", problem)
    why = (
        "no network, own processes, only the workspace can be written, credentials in it are hidden"
    )
    return ProbeResult("bubblewrap", why)


def _probe_landlock() -> ProbeResult:
    abi = version()
    if abi == 0 or seccomp.machine() is None:
        return ProbeResult("none", "the kernel has no Landlock, or it is off")
    gap = "" if abi >= 6 else ", and other processes can be signalled"
    why = (
        f"Landlock {abi}, no network, only files in the workspace can be written; but modes, "
        "owners and times of your files elsewhere can be changed, and credentials in the "
        f"workspace can be read{gap}"
    )
    return ProbeResult("landlock", why)


def _probe_landlock_as_default() -> ProbeResult:
    """Probe Landlock if nobody asked for it by name: for root it is not enough."""
    result = _probe_landlock()
    if result.level == "none" or os.geteuid() != 0:
        return result
    why = (
        "Landlock alone hardly restricts root, who can change modes and owners everywhere; "
        "to use it anyway, pass --sandbox landlock"
    )
    return ProbeResult("none", why)


class Sandbox:
    """Starts the commands of one workspace, confined.

    `roots` are more folders that the person allows to be written; `hidden` is what nobody may read:
    bridle's own state and settings. `level` is the one that a person asked for; with `auto` the
    best one is used, and if it is empty, the one in the environment's `BRIDLE_SANDBOX`. `state` is
    the folder of bridle's state, if there is one: backups for after a crash are kept there.
    """

    def __init__(
        self,
        root: str,
        *,
        roots: Iterable[str] = (),
        hidden: Iterable[str] = (),
        network: bool = False,
        level: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = os.environ if environment is None else environment
        self._roots = tuple(map(os.path.realpath, (root, *roots)))
        self._hidden = tuple(map(os.path.realpath, hidden))
        self.state = ""
        self._linked: dict[str, LinkedRepository] = {}
        self._network = network
        self._confinements: dict[bool, Confinement] = {}  # by whether it has the network
        wanted = level or self._environment.get(VARIABLE, "")
        self._wanted = "" if wanted == AUTO else wanted

    @cached_property
    def probe_result(self) -> ProbeResult:
        """The level that this workspace's commands run at, and why.

        Raise `ConfigError` if a person asked for a level by name that cannot be used.
        """
        if "/" in self._roots:
            return ProbeResult("none", "the workspace is the whole file system")
        result = probe(self._wanted)
        why = ""
        if result.level == "bubblewrap":
            why = bubblewrap.failure(self._bubblewrap_words(self._network))
        if why:
            result = ProbeResult("none", why) if self._wanted else _probe_landlock_as_default()
        if result.level == "landlock" and (inside := self._secrets_inside):
            why = f"{inside[0]} is inside the workspace, and Landlock cannot hide it"
            result = ProbeResult("none", why)
        if result.level == "none" and self._wanted not in ("", "none"):
            raise _unusable(self._wanted, result.why)
        return result

    @cached_property
    def temp(self) -> str:
        """The temporary folder of its commands, which is removed with the sandbox."""
        return private_folder(self)

    @cached_property
    def _git(self) -> dict[str, GitConfiguration]:
        home = os.path.expanduser("~")  # noqa: PTH111 - a string is wanted
        return {root: GitConfiguration(root, home) for root in self._roots}

    @property
    def level(self) -> Level:
        """The level that this workspace's commands run at."""
        return self.probe_result.level

    def start(
        self,
        argv: Sequence[str],
        cwd: str,
        lifeline: int,
        *,
        network: bool = False,
        unreadable: Sequence[str] = (),
        unwritable: Sequence[str] = (),
        background: bool = False,
    ) -> Start:
        """Return how to start a command at the level that there is, with or without the network.

        `argv` is bash with `-c` and a script. `lifeline` is the reading end of a pipe whose other
        end this process holds. In bubblewrap the command begins when a byte is written to it and
        the handles that the command inherits are closed here.

        `unreadable` and `unwritable` are files and folders of the workspace that exist. Only
        bubblewrap can protect them. A command in the `background` cannot rename the folders that
        unreadable files are in: while the next command starts, its sandbox would cover other paths.
        """
        network = network or self._network
        if self.level == "bubblewrap":
            fixed = self._folders_above(unreadable) if background else ()
            missing = self._missing_git_folders
            words = self._bubblewrap_words(network, missing, unreadable, unwritable, fixed)
            words += ["--chdir", cwd]
            return self._in_bubblewrap(words, argv, lifeline, network=network)
        if self.level == "landlock":
            return supervised_start(argv, lifeline, self._confinement(network))
        return supervised_start(argv, lifeline)

    def _confinement(self, network: bool) -> "Confinement":
        """Return the rules of Landlock and the filter. Computed once, since it takes 3 ms."""
        if network not in self._confinements:
            abi = version()
            attributes, rules = ruleset(
                [*system_folders(os.geteuid() == 0), "/proc", *self._readable(network)],
                [*self._writable, self.temp],
                DEVICES,
                network=network,
                abi=abi,
            )
            families = seccomp.OPEN if network else ()
            program = seccomp.compile_filter(families, truncates=abi >= 3, shared=True)
            self._confinements[network] = attributes, rules, program
        return self._confinements[network]

    def _in_bubblewrap(
        self, words: list[str], argv: Sequence[str], lifeline: int, *, network: bool
    ) -> Start:
        reader, writer = os.pipe()
        with open(writer, "wb") as file:  # noqa: PTH123 - a handle, not a path
            file.write(_filter(network))
        alive, writer = os.pipe()
        # bwrap is a reader, too: nobody reads what it reports at its end, and that must not end it
        status = os.open(f"/proc/self/fd/{alive}", os.O_RDWR | os.O_CLOEXEC)
        os.close(writer)
        words = [*words, "--seccomp", str(reader), "--json-status-fd", str(status)]
        inner = ["--", *_with_orphan_check(argv, alive, lifeline)]
        return Start([*words, *inner], (reader, alive, status, lifeline), has_namespace=True)

    def _bubblewrap_words(
        self,
        network: bool,
        missing: Iterable[str] = (),
        unreadable: Iterable[str] = (),
        unwritable: Iterable[str] = (),
        fixed: Iterable[str] = (),
    ) -> list[str]:
        """Return the command line of bwrap. What is protected is looked up each time.

        For a missing folder, bwrap creates an empty one in the workspace, and covers it.
        """
        words = bubblewrap.mounts(
            [*system_folders(as_root=False), *self._readable(network)],
            [*self._writable, self.temp, *filter(_exists, fixed)],
            [path for path in (*self._read_only, *unwritable) if _exists(path)],
            [*self._secrets_inside, *secret_system_files(), *filter(_exists, unreadable)],
        )
        cover = bubblewrap.empty_folders(missing)
        return [*bubblewrap.common_words(network=network), *words, *cover]

    def _folders_above(self, paths: Iterable[str]) -> list[str]:
        """Return the folders of the workspace that have these files in them, sorted."""
        folders: set[str] = set()
        for path in paths:
            while (path := path.rpartition("/")[0]) and path not in self._roots:
                folders.add(path)
        return sorted(
            folder for folder in folders if any(is_below(folder, root) for root in self._roots)
        )

    @property
    def _read_only(self) -> list[str]:
        paths = [f"{root}/{name}" for root in self._roots for name in _READ_ONLY]
        for root, git in self._git.items():
            paths += [f"{root}/{name}" for name in git.paths.files_in(root)]
        owns = [own for root in self._roots if (own := self._linked_repository(root).own)]
        return paths + [f"{own}/{name}" for own in owns for name in WORKTREE_FILES]

    @property
    def _missing_git_folders(self) -> list[str]:
        """Folders of git that a command could create in a repository."""
        folders = []
        for root in self._roots:
            if Path(root, ".git/HEAD").is_file() and not Path(root, ".git").is_symlink():
                folders += [f"{root}/.git/hooks", f"{root}/.git/info"]
        return [folder for folder in folders if not os.path.lexists(folder)]

    @cached_property
    def _readable_folders(self) -> list[str]:
        folders = tool_chains(self._environment, self._hidden)
        for root in self._roots:
            folders += self._linked_repository(root).readable
        return folders

    def _readable(self, network: bool) -> list[str]:
        """Return what a command reads besides the system; with the network, also name services."""
        services = NAME_SERVICES if network else ()
        return [
            *self._readable_folders,
            *(service for service in services if os.access(service, os.F_OK)),
        ]

    @cached_property
    def _writable(self) -> list[str]:
        linked = [self._linked_repository(root).writable for root in self._roots]
        return [*self._roots, *(path for paths in linked for path in paths)]

    def _linked_repository(self, root: str) -> LinkedRepository:
        """Return it as it was at the first call: a command may have changed it since."""
        if root not in self._linked:
            self._linked[root] = linked_repository(root)
        return self._linked[root]

    @cached_property
    def _secrets_inside(self) -> list[str]:
        """What must be hidden although it lies in the workspace."""
        return [
            path
            for path in (*credential_paths(self._environment), *self._hidden)
            if any(is_below(path, root) for root in self._roots) and os.access(path, os.F_OK)
        ]


Confinement = tuple[bytes, list[tuple[str, int]], bytes]


def _exists(path: str) -> bool:
    return os.access(path, os.F_OK) and not Path(path).is_symlink()


def _with_orphan_check(argv: Sequence[str], alive: int, lifeline: int) -> list[str]:
    """Return the words of bash with a check, so that it never outlives this process.

    bwrap asks the kernel to be ended with this process, and the first process of its namespace to
    be ended with bwrap, but only some time after they have started. If this process were killed
    before that, they would run for ever. So bash waits for a byte from this process, which by then
    has closed the handles that only bwrap must hold, and until both have asked, which shows in
    that process having the same seccomp filter as bash. If this process or bwrap has ended by
    then, bash reads the end of a pipe, and ends. After that, the kernel takes care of it.
    """
    *options, script = argv[: (end := argv.index("-c") + 2)]
    check = _ORPHAN_CHECK.replace("ALIVE", str(alive)).replace("LIFELINE", str(lifeline))
    return [*options, check + script, *argv[end:]]


# in one line, so that bash numbers the lines of the command from one
_ORPHAN_CHECK = (
    "read -rn 1 -u LIFELINE __first || exit 1; read -ru ALIVE __first; "
    "for ((__n = 0; __n < 5000; __n++)); do "
    "read -rd '' __first </proc/1/status; read -rd '' __own </proc/self/status; "
    "__first=${__first#*Seccomp} __own=${__own#*Seccomp}; "
    '[[ ${__first%%[SC]p[eu]*} == "${__own%%[SC]p[eu]*}" ]] && break; '
    "read -rt 0.002 -u ALIVE; (($? > 128)) || exit 1; done; unset __n __first __own; "
    "read -t 0 -u ALIVE && exit 1; read -t 0 -u LIFELINE && exit 1; exec ALIVE<&- LIFELINE<&-; "
)


@cache
def _filter(network: bool) -> bytes:
    return seccomp.compile_filter(seccomp.OPEN if network else seccomp.LOCAL)


def supervised_start(
    argv: Sequence[str], lifeline: int, confinement: Confinement | None = None
) -> Start:
    """Return how to start a command below `supervise.py`, which listens to that lifeline."""
    attributes, rules, program = confinement or (None, None, None)
    spec = {
        "lifeline": lifeline,
        "attributes": attributes,
        "rules": rules,
        "program": program,
        "shells": SHELLS,
    }
    python = cast("str", getattr(sys, "_base_executable", "") or sys.executable)
    written = marshal.dumps(spec).hex()
    return Start([python, "-I", "-S", _SCRIPT, written, *argv], (lifeline,))
