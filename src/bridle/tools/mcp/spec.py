"""How an MCP server is reached, and the errors if its connection is lost. Starts nothing."""

from urllib.parse import urlsplit

from msgspec import Struct

from bridle.errors import ToolError

START_SECONDS = 30.0  # for its start and for each answer, unless the settings say otherwise


class ServerSpec(Struct, frozen=True):
    """One server: a command and its arguments, or a URL.

    `identity` identifies what the person wrote: with another command or URL it is another server,
    and nothing that was known of the old one applies. `origin` is where the settings are.
    `problem` says why it cannot be used, if that is known already. `trusted`: the settings are in
    the workspace, and the person trusts it with the files that the command names. `tokens` is the
    file for the tokens of a server at which a person signs in.
    """

    name: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = START_SECONDS
    identity: str = ""
    origin: str = ""
    problem: str = ""
    tokens: str = ""
    trusted: bool = False

    @property
    def place(self) -> str:
        """The command, or the URL without what may be secret, for a person."""
        if self.command:
            return " ".join(self.command)
        return public_url(self.url)

    def __repr__(self) -> str:
        return f"<server {self.name}: {self.place}>"  # neither variables nor headers


class ConnectionLost(ToolError):
    """The connection has ended. A call that was running may have had an effect."""

    retryable = True  # to connect; a call is not sent again


class SessionExpired(ConnectionLost):
    """The server does not know our session and has refused this request: it was not carried out."""


def public_url(url: str) -> str:
    """Return a URL without user name and query, either of which may contain a token."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path}"
