"""The sandbox: how a command is started so that it cannot do what it was not allowed to do.

Two levels: `bubblewrap`, where running it shows that it works, and `landlock`, where the kernel has
it. Both let a command write the workspace and its own temporary folder, read the system and tool
chains, and nothing else: not the home folder, not bridle's own files, no network, no other process.
Where there is neither, the level is `none`, and it says why. Decides nothing: whether a command may
run is the gate's to say.

At `landlock` a command makes no sockets but connected pairs: one with a name would reach the
session's bus, a terminal multiplexer or a container daemon, and through them do anything.
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

# Landlock: what a process and all its children may do with files, for the kernel that is there.

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_DEVICES = 1 << 6 | 1 << 11  # making them is never allowed
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
    """The version of Landlock in this kernel; 0 where there is none, or where it is off."""
    if sys.platform != "linux":
        return 0
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    return max(int(found), 0)


def ruleset(
    readable: Iterable[str],
    writable: Iterable[str],
    devices: Iterable[str],
    *,
    network: bool,
    abi: int,
) -> Ruleset:
    """What is handled, as the kernel wants it, and the rights that each path has."""
    handled = _handled(abi)
    reads = (_EXECUTE | _READ | _LIST) & handled
    writes = handled & ~_DEVICES & ~_IOCTL
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


def _handled(abi: int) -> int:
    found = _ALL
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL)):
        if abi >= since:
            found |= right
    return found


# What a confined command may read besides the workspace: the system, and tool chains.

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/sys"),
    *("/nix", "/gnu/store", "/snap", "/home/linuxbrew/.linuxbrew", "/var/lib/alternatives"),
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
NAMES = ("/run/systemd/resolve", "/run/resolvconf", "/run/nscd")  # for a network that is allowed

# below the home folder
_CHAINS = (
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
    """What is there of the system. For root, /etc is given piece by piece, without its secrets."""
    for folder in SYSTEM:
        if as_root and folder == "/etc":
            yield from _around("/etc", secret_settings())
        elif os.access(folder, os.F_OK):
            yield folder


def secret_settings() -> tuple[str, ...]:
    """What of /etc root can read, and a confined command shall not."""
    named = (f"/{part}" for part in system_credential_paths() if part.startswith("etc/"))
    return tuple(path for path in (*named, "/etc/ssh") if os.access(path, os.F_OK))


def _around(folder: str, secret: Sequence[str]) -> Iterator[str]:
    """What is in a folder, but for what is secret: beside it, each by itself."""
    for entry in sorted(Path(folder).iterdir()):
        path = str(entry)
        if path in secret:
            continue
        if any(is_below(one, path) for one in secret):
            yield from _around(path, secret)
        else:
            yield path


def tool_chains(environment: Mapping[str, str], hidden: Iterable[str]) -> list[str]:
    """The tool chains that are there; none that would show the home folder or what is hidden."""
    home = os.path.realpath(environment.get("HOME") or Path.home())
    named = [f"{home}/{part}" for part in _CHAINS]
    named += [environment.get(name, "") for name in _VARIABLES]
    named += [sys.prefix, sys.base_prefix, sys.exec_prefix]
    named += [path for path in sys.path if path.endswith(("/site-packages", "/dist-packages"))]
    named += environment.get("PATH", "").split(":")
    secret = [home, *private_places(environment), *hidden]
    found: dict[str, None] = {}
    for path in filter(os.path.isabs, named):
        real = os.path.realpath(path)
        shows = real == "/" or any(is_below(one, real) for one in secret)
        if not shows and os.access(real, os.F_OK):
            found |= {real: None, os.path.normpath(path): None}  # also by the name it is known by
    return [*found]


def private_places(environment: Mapping[str, str]) -> list[str]:
    """Where a person keeps keys and passwords, as far as they are there."""
    home = os.path.realpath(environment.get("HOME") or Path.home())
    return [
        path for part in home_credential_paths() if os.access(path := f"{home}/{part}", os.F_OK)
    ]


Level = Literal["bubblewrap", "landlock", "none"]
VARIABLE = "BRIDLE_SANDBOX"
AUTO = "auto"  # the best that there is, as when nothing is said
_SCRIPT = str(Path(__file__).with_name("supervise.py"))
_CLOSED = (".git/hooks", ".git/info", ".git/config", ".bridle")  # in the root: read, not written


class ProbeResult(NamedTuple):
    """The level that commands can run at here, and a word why."""

    level: Level
    why: str


class Start(NamedTuple):
    """What is really executed, and the handles that it is given besides the caller's own.

    `own_end`: it ends what it has started when bridle does, and by itself; otherwise
    `supervise.py` does that, at the word of its lifeline.
    """

    argv: list[str]
    handles: tuple[int, ...] = ()
    own_end: bool = False


@cache
def probe(wanted: str = "") -> ProbeResult:
    """Which level there is, or what became of the one that is wanted. Cached; 10 ms the first time.

    Raise `ConfigError` where the wanted one is not to be had: a person asked for it by name.
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
    lacks: list[str] = []
    own = _landlock if wanted else _landlock_unasked
    for level, look in (("bubblewrap", _bubblewrap), ("landlock", own)):
        if wanted in ("", level):
            found = look()
            if found.level != "none":
                return found
            lacks.append(found.why)
    why = "; ".join(lacks)
    if wanted:
        raise _not_to_be_had(wanted, why)
    return ProbeResult("none", why)


def _not_to_be_had(wanted: str, why: str) -> ConfigError:
    return ConfigError(
        f"The sandbox {wanted} cannot be used: {why}.",
        hint=f"Set {VARIABLE} to auto for the best that there is, or set it to none.",
    )


def _bubblewrap() -> ProbeResult:
    if seccomp.machine() is None:
        return ProbeResult("none", "no system calls are known for this machine")
    trouble = bubblewrap.trouble()
    if trouble:
        return ProbeResult("none", trouble)
    why = (
        "no network, own processes, only the workspace can be written, credentials in it are hidden"
    )
    return ProbeResult("bubblewrap", why)


def _landlock() -> ProbeResult:
    abi = version()
    if abi == 0 or seccomp.machine() is None:
        return ProbeResult("none", "the kernel has no Landlock, or it is off")
    open_still = "" if abi >= 6 else ", and other processes can be signalled"
    why = (
        f"Landlock {abi}, no network, only files in the workspace can be written; but modes, "
        "owners and times of your files elsewhere can be changed, and credentials in the "
        f"workspace can be read{open_still}"
    )
    return ProbeResult("landlock", why)


def _landlock_unasked() -> ProbeResult:
    """Landlock where nobody asked for it by name. For root it does not do."""
    found = _landlock()
    if found.level == "none" or os.geteuid() != 0:
        return found
    why = (
        "Landlock alone hardly restricts root, who can change modes and owners everywhere; "
        "to use it anyway, pass --sandbox landlock"
    )
    return ProbeResult("none", why)


class Sandbox:
    """Starts the commands of one workspace, confined.

    `roots` are more folders that may be written, by the person's word; `hidden` is what nobody may
    read: bridle's own state and settings. `level` is the one a person asked for (empty or
    `auto`: the best; where it is empty, the environment's `BRIDLE_SANDBOX` has a say). Whoever
    has a folder of bridle's state says so in `state`: what is noted for after a crash lies there.
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
        self._roots = tuple(os.path.realpath(one) for one in (root, *roots))
        self._hidden = tuple(os.path.realpath(one) for one in hidden)
        self.state = ""
        self._known: dict[str, LinkedRepository] = {}
        home = os.path.expanduser("~")  # noqa: PTH111 - a string is wanted
        self._git = {root: GitConfiguration(root, home) for root in self._roots}
        self._network = network
        self._confinements: dict[bool, Confinement] = {}  # by whether it has the network
        wanted = level or self._environment.get(VARIABLE, "")
        self._wanted = "" if wanted == AUTO else wanted

    @cached_property
    def probe_result(self) -> ProbeResult:
        """The level that this workspace's commands run at, and why.

        Raise `ConfigError` where a person asked for one by name that is not to be had.
        """
        if "/" in self._roots:
            return ProbeResult("none", "the workspace is the whole file system")
        found = probe(self._wanted)
        if found.level == "bubblewrap" and (said := self._refusal()):
            found = ProbeResult("none", said) if self._wanted else _landlock_unasked()
        if found.level == "landlock" and (inside := self._exposed):
            why = f"{inside[0]} is inside the workspace, and Landlock cannot hide it"
            found = ProbeResult("none", why)
        if found.level == "none" and self._wanted not in ("", "none"):
            raise _not_to_be_had(self._wanted, found.why)
        return found

    def _refusal(self) -> str:
        return bubblewrap.refusal(self._wrapping(self._network))

    @cached_property
    def temp(self) -> str:
        """The temporary folder that its commands have for themselves; it goes with the sandbox."""
        return private_folder(self)

    @property
    def level(self) -> Level:
        """The level alone."""
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
        """How to start this command, for the level that there is; `network`: with the network.

        `argv` is bash with `-c` and a script. `lifeline` is the reading end of a pipe whose other
        end this process holds. In bubblewrap the command begins when a byte is written to it, and
        the handles that are given to the command have been closed here.

        `unreadable` and `unwritable` are files and folders of the workspace that are there. Only
        bubblewrap can take them from a command. One in the `background` cannot rename the folders
        that unreadable files are in: while the next command starts, they would not be where its
        sandbox covers them.
        """
        network = network or self._network
        if self.level == "bubblewrap":
            fixed = self._folders_above(unreadable) if background else ()
            words = self._wrapping(network, self._absent, unreadable, unwritable, fixed)
            words += ["--chdir", cwd]
            return self._in_bubblewrap(words, argv, lifeline, network=network)
        if self.level == "landlock":
            return supervised_start(argv, lifeline, self._confinement(network))
        return supervised_start(argv, lifeline)

    def _confinement(self, network: bool) -> "Confinement":
        """What Landlock and the filter are told. It takes 3 ms, so once."""
        if network not in self._confinements:
            abi = version()
            attributes, rules = ruleset(
                [*system_folders(os.geteuid() == 0), "/proc", *self._readable(network)],
                [*self._written, self.temp],
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
        # bwrap is a reader, too: what it reports at its end is read by nobody, and must not end it
        status = os.open(f"/proc/self/fd/{alive}", os.O_RDWR | os.O_CLOEXEC)
        os.close(writer)
        words = [*words, "--seccomp", str(reader), "--json-status-fd", str(status)]
        inner = ["--", *_unless_orphaned(argv, alive, lifeline)]
        return Start([*words, *inner], (reader, alive, status, lifeline), own_end=True)

    def _wrapping(
        self,
        network: bool,
        absent: Iterable[str] = (),
        unreadable: Iterable[str] = (),
        unwritable: Iterable[str] = (),
        fixed: Iterable[str] = (),
    ) -> list[str]:
        """The words for bwrap, as things stand now: what is protected may be new.

        For what is absent it makes an empty folder in the workspace, and covers it.
        """
        words = bubblewrap.mounts(
            [*system_folders(as_root=False), *self._readable(network)],
            [*self._written, self.temp, *filter(_is_there, fixed)],
            [one for one in (*self._closed, *unwritable) if _is_there(one)],
            [*self._exposed, *secret_settings(), *filter(_is_there, unreadable)],
        )
        cover = bubblewrap.empty(absent)
        return [*bubblewrap.beginning(network=network), *words, *cover]

    def _folders_above(self, paths: Iterable[str]) -> list[str]:
        """The folders of the workspace that these files are in, those nearest to the root first."""
        found: set[str] = set()
        for path in paths:
            while (path := path.rpartition("/")[0]) and path not in self._roots:
                found.add(path)
        return sorted(one for one in found if any(is_below(one, root) for root in self._roots))

    @property
    def _closed(self) -> list[str]:
        found = [f"{root}/{name}" for root in self._roots for name in _CLOSED]
        for root, git in self._git.items():
            found += [f"{root}/{name}" for name in git.paths.files_in(root)]
        owns = [own for root in self._roots if (own := self._linked_repository(root).own)]
        return found + [f"{own}/{name}" for own in owns for name in WORKTREE_FILES]

    @property
    def _absent(self) -> list[str]:
        """Folders of git that a command could make in a repository."""
        found = []
        for root in self._roots:
            if Path(root, ".git/HEAD").is_file() and not Path(root, ".git").is_symlink():
                found += [f"{root}/.git/hooks", f"{root}/.git/info"]
        return [one for one in found if not os.path.lexists(one)]

    @cached_property
    def _read(self) -> list[str]:
        found = tool_chains(self._environment, self._hidden)
        return found + [
            one for root in self._roots for one in self._linked_repository(root).readable
        ]

    def _readable(self, network: bool) -> list[str]:
        """What a command reads besides the system; with the network also how names are resolved."""
        names = NAMES if network else ()
        return [*self._read, *(one for one in names if os.access(one, os.F_OK))]

    @cached_property
    def _written(self) -> list[str]:
        more = (one for root in self._roots for one in self._linked_repository(root).writable)
        return [*self._roots, *more]

    def _linked_repository(self, root: str) -> LinkedRepository:
        """As it was when first asked: a command may have written it since."""
        if root not in self._known:
            self._known[root] = linked_repository(root)
        return self._known[root]

    @cached_property
    def _exposed(self) -> list[str]:
        """What is to be hidden, and lies inside the workspace all the same."""
        secret = [*private_places(self._environment), *self._hidden]
        return [
            one
            for one in secret
            if any(is_below(one, root) for root in self._roots) and os.access(one, os.F_OK)
        ]


Confinement = tuple[bytes, list[tuple[str, int]], bytes]


def _is_there(path: str) -> bool:
    return os.access(path, os.F_OK) and not Path(path).is_symlink()


def _unless_orphaned(argv: Sequence[str], alive: int, lifeline: int) -> list[str]:
    """Those words of bash, which ends at once if nobody would end the command with this process.

    bwrap asks the kernel to be ended with this process, and the first process of its space to be
    ended with bwrap, but only some time after they have started. If this process is killed before
    that, they would run for ever. So bash waits for a byte from this process, which by then has
    closed what only bwrap is to hold, and until both have asked: the latter takes the same filter
    of system calls as bash next. If this process or bwrap has ended by then, the pipe that it alone
    holds the other end of is at its end. After that, the kernel sees to it.
    """
    *options, script = argv[: (end := argv.index("-c") + 2)]
    check = _UNLESS_ORPHANED.replace("ALIVE", str(alive)).replace("LIFELINE", str(lifeline))
    return [*options, check + script, *argv[end:]]


# in one line, so that bash numbers the lines of the command from one
_UNLESS_ORPHANED = (
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
    """The command below `supervise.py`, which listens to that lifeline."""
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
