"""The MCP servers of the settings as a source of tools.

Nothing is started. A server whose variables are not set is listed, too; it reports what is missing
when it is used.
"""

import os
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from bridle.config.folder import load_servers
from bridle.config.paths import config_file, state_folder
from bridle.engine.json_schema import compile_schema
from bridle.protocols.tool import ToolSource
from bridle.runtime.providers import add_secrets
from bridle.tools.mcp.pins import Pins
from bridle.tools.mcp.server import Server
from bridle.tools.mcp.servers import Servers
from bridle.tools.mcp.spec import ServerSpec

if TYPE_CHECKING:
    from bridle.config.mcp import ServerSettings

PINS = "mcp"  # in the state folder
_WORKSPACE_FILE = ".bridle/mcp.yaml"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET = re.compile(r"token|key|secret|pass|auth|credential", re.IGNORECASE)
_MIN_SECRET = 8  # characters; a shorter one would be found in harmless text


def mcp_sources(
    root: str | os.PathLike[str], *, state: str | os.PathLike[str] | None = None
) -> tuple[ToolSource, ...]:
    """Return the servers for a workspace, for `build_engine(sources=…)`. Raise `ConfigError`.

    Call it before the engine is built: secrets in their settings are kept out of its log from then
    on.
    """
    return make_sources(load_servers(Path(root)).items, root, state=state)


def may_have_servers(root: Path, environ: Mapping[str, str]) -> bool:
    """May the settings contain servers? YAML is not parsed: most people have none."""
    if os.path.lexists(root / _WORKSPACE_FILE):
        return True
    try:
        return b"mcp" in config_file(environ).read_bytes()
    except OSError:
        return False  # reading the settings reports what is wrong with them


def make_sources(
    servers: "Iterable[ServerSettings]",
    root: str | os.PathLike[str],
    *,
    state: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[ToolSource, ...]:
    """Return these servers as one source; none if all of them are disabled."""
    enabled = [server for server in servers if server.enabled]
    if not enabled:
        return ()
    environ = os.environ if environ is None else environ
    folder = Path(state) if state is not None else state_folder(environ)
    return (Servers([make_server(server, root, folder, environ) for server in enabled]),)


def make_server(
    settings: "ServerSettings",
    root: str | os.PathLike[str],
    state: Path,
    environ: Mapping[str, str],
) -> Server:
    """Return one server, not started, with the tools that it had before."""
    spec = make_spec(settings, Path(root), environ)
    if settings.auth:
        spec = replace(spec, tokens=tokens_path(spec, state))
        add_secrets(_saved_tokens(spec.tokens))
    pins = Pins(str(state / PINS), spec.name, spec.identity)
    return Server(spec, os.path.realpath(root), pins, compile_schema)


def tokens_path(spec: ServerSpec, state: Path) -> str:
    """Return the path of the tokens of a server that needs a login."""
    return str(state / PINS / f"{spec.name}-{spec.identity[:16]}.tokens")


def _saved_tokens(path: str) -> list[str]:
    """Return the tokens in such a file; none if there is no file."""
    try:
        tokens = msgspec.json.decode(Path(path).read_bytes())["tokens"]
        values = [tokens.get(name) for name in ("access_token", "refresh_token")]
    except (OSError, msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return []
    return [value for value in values if isinstance(value, str) and len(value) >= _MIN_SECRET]


def make_spec(settings: "ServerSettings", root: Path, environ: Mapping[str, str]) -> ServerSpec:
    """Return how to reach it, with its variables substituted."""
    variables = _Variables(environ)
    env = {name: variables.substitute(value) for name, value in settings.env.items()}
    headers = {name: variables.substitute(value) for name, value in settings.headers.items()}
    url = variables.substitute(settings.url)
    named = [value for name, value in env.items() if _SECRET.search(name)]
    tokens = [value.partition(" ")[2] for value in headers.values()]  # after "Bearer"
    secrets = (*variables.values, *named, *headers.values(), *tokens)
    add_secrets(secret for secret in secrets if len(secret) >= _MIN_SECRET)
    cwd = str(root / Path(settings.cwd).expanduser()) if settings.cwd else ""
    return ServerSpec(
        settings.name,
        settings.command,
        env,
        cwd,
        url,
        headers,
        settings.timeout,
        _identity(settings, root),
        settings.origin,
        variables.problem,
        trusted=settings.here,
    )


class _Variables:
    """Substitutes variables in texts, and remembers their values, which may be secret."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.values: list[str] = []
        self.problem = ""

    def substitute(self, text: str) -> str:
        return _VARIABLE.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        value = self._environ.get(match[1], "")
        if not value:
            self.problem = f"the variable {match[1]} is not set"
        elif not value.isprintable():
            self.problem = f"the variable {match[1]} holds unreadable characters"
        self.values.append(value)
        return value


def _identity(settings: "ServerSettings", root: Path) -> str:
    """Return a hash of the settings; of those in a workspace's file, with the workspace."""
    server: tuple[Any, ...] = (settings.command, settings.cwd, settings.url)
    more = (sorted(settings.env.items()), sorted(settings.headers.items()))
    where = os.path.realpath(root) if settings.here else ""
    return sha256(msgspec.json.encode((server, more, where))).hexdigest()
