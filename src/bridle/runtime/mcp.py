"""The MCP servers that a person has set up, as a source of tools: settings, pins and tools meet.

Starts nothing, and loads hardly anything. A server whose variables are not set is there all the
same, and says so when it is needed.
"""

import os
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from bridle.tools.mcp.server import Server
    from bridle.tools.mcp.spec import ServerSpec

PINS = "mcp"  # in the state folder
_FOLDERS_OWN = ".bridle/mcp.yaml"  # the settings' own, without their imports
_NAMED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET = re.compile(r"token|key|secret|pass|auth|credential", re.IGNORECASE)
_LEAST = 8  # characters; what is shorter would be found in harmless text


def mcp_sources(
    root: str | os.PathLike[str], *, state: str | os.PathLike[str] | None = None
) -> tuple[ToolSource, ...]:
    """The servers that count in a folder, for `build_engine(sources=…)`. Raise `ConfigError`.

    To be called before the engine is made: what their settings hold of secrets is kept out of its
    log from then on.
    """
    return sources_of(load_servers(Path(root)).items, root, state=state)


def are_there_any(root: Path, environ: Mapping[str, str]) -> bool:
    """May there be servers? Looked at without reading YAML: most people have none."""
    if os.path.lexists(root / _FOLDERS_OWN):
        return True
    try:
        return b"mcp" in config_file(environ).read_bytes()
    except OSError:
        return False  # whoever reads the settings says what is wrong with them


def sources_of(
    servers: "Iterable[ServerSettings]",
    root: str | os.PathLike[str],
    *,
    state: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[ToolSource, ...]:
    """These servers as one source; none where all of them are switched off."""
    enabled = [one for one in servers if one.enabled]
    if not enabled:
        return ()
    environ = os.environ if environ is None else environ
    folder = Path(state) if state is not None else state_folder(environ)
    return (Servers([server_of(one, root, folder, environ) for one in enabled]),)


def server_of(
    settings: "ServerSettings",
    root: str | os.PathLike[str],
    state: Path,
    environ: Mapping[str, str],
) -> "Server":
    """One server, not started, with what is known of it from before."""
    spec = spec_of(settings, Path(root), environ)
    if settings.auth:
        spec = replace(spec, tokens=tokens_of(spec, state))
        add_secrets(_given(spec.tokens))
    pins = Pins(str(state / PINS), spec.name, spec.identity)
    return Server(spec, os.path.realpath(root), pins, _compiled)


def tokens_of(spec: "ServerSpec", state: Path) -> str:
    """Where the tokens of a server lie at which a person signs in."""
    return str(state / PINS / f"{spec.name}-{spec.identity[:16]}.tokens")


def _given(path: str) -> list[str]:
    """The tokens in such a file; none where there is none."""
    import msgspec

    try:
        found = msgspec.json.decode(Path(path).read_bytes())["tokens"]
        values = [found.get(name) for name in ("access_token", "refresh_token")]
    except (OSError, msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return []
    return [one for one in values if isinstance(one, str) and len(one) >= _LEAST]


def spec_of(settings: "ServerSettings", root: Path, environ: Mapping[str, str]) -> "ServerSpec":
    """How it is reached, with its variables looked up."""
    lookup = _Lookup(environ)
    env = {name: lookup.fill(value) for name, value in settings.env.items()}
    headers = {name: lookup.fill(value) for name, value in settings.headers.items()}
    url = lookup.fill(settings.url)
    named = [value for name, value in env.items() if _SECRET.search(name)]
    add_secrets(one for one in (*lookup.found, *named, *_tokens(headers)) if len(one) >= _LEAST)
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
        lookup.problem,
        trusted=settings.here,
    )


class _Lookup:
    """Puts variables in their places, and remembers what they held."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.found: list[str] = []
        self.problem = ""

    def fill(self, text: str) -> str:
        return _NAMED.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        value = self._environ.get(match[1], "")
        if not value:
            self.problem = f"the variable {match[1]} is not set"
        elif not value.isprintable():
            self.problem = f"the variable {match[1]} holds unreadable characters"
        self.found.append(value)
        return value


def _tokens(headers: Mapping[str, str]) -> list[str]:
    """What of headers nobody is to read: all of it, and a token without the word before it."""
    values = list(headers.values())
    return values + [value.partition(" ")[2] for value in values if " " in value]


def _identity(settings: "ServerSettings", root: Path) -> str:
    """What the person wrote, as one number; in a folder's own file, with the folder."""
    import msgspec

    said: tuple[Any, ...] = (settings.command, settings.cwd, settings.url)
    more = (sorted(settings.env.items()), sorted(settings.headers.items()))
    where = os.path.realpath(root) if settings.here else ""
    return sha256(msgspec.json.encode((said, more, where))).hexdigest()


def _compiled(schema: dict[str, Any]) -> object:
    return compile_schema(schema)
