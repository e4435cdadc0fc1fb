"""What a confined command may read besides the workspace: the system, and tool chains.

A person's home folder is not among it, only the parts of it in which compilers, interpreters and
their packages lie, and what git needs to know its user. Where such a part usually holds a password
as well (cargo, maven, gem) only the folders beside it are named.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bridle.workspace.fs import is_below
from bridle.workspace.protected import home_paths, system_paths

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
    named = (f"/{part}" for part in system_paths() if part.startswith("etc/"))
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
    return [path for part in home_paths() if os.access(path := f"{home}/{part}", os.F_OK)]
