"""Signing in at a server, by OAuth with the SDK.

The tokens are in one private file in the state folder. A person gives consent in a browser. If none
is available, the caller is told how to sign in.
"""

from pathlib import Path
from typing import Any, Protocol

import httpx2
import msgspec
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from bridle.errors import ToolError
from bridle.tools.mcp.spec import ServerSpec
from bridle.workspace.fs import write_private

_NO_REDIRECT = "http://127.0.0.1:1/callback"  # where nobody waits for consent


class Browser(Protocol):
    """A browser with a person, who is redirected to us afterwards."""

    @property
    def redirect_url(self) -> str:
        """Where the person is redirected to."""
        ...

    async def open(self, url: str) -> None:
        """Have the person open this page."""
        ...

    async def callback(self) -> dict[str, str]:
        """Await the redirect, and return its parameters: `code`, `state` and perhaps `iss`."""
        ...


def oauth_provider(spec: ServerSpec, browser: Browser | None) -> httpx2.Auth:
    """Return what signs requests to the server, and asks for consent if that is needed."""

    async def open_page(url: str) -> None:
        if browser is None:
            raise ToolError(f"it wants you to sign in first: bridle mcp login {spec.name}")
        await browser.open(url)

    async def await_callback() -> AuthorizationCodeResult:
        assert browser is not None  # `open_page` came first
        parameters = await browser.callback()
        if "code" not in parameters:
            reason = parameters.get("error", "no code came back")
            raise ToolError(f"signing in was refused: {reason}")
        return AuthorizationCodeResult.model_validate(parameters)

    redirect_url = browser.redirect_url if browser is not None else _NO_REDIRECT
    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "bridle", "redirect_uris": [redirect_url]}
    )
    storage = TokenFile(spec.tokens, ignore_saved=browser is not None)
    return OAuthClientProvider(spec.url, metadata, storage, open_page, await_callback)


class TokenFile:
    """Tokens and client information in a file, as the SDK wants to store them."""

    def __init__(self, path: str, *, ignore_saved: bool = False) -> None:
        self._path = Path(path) if path else None
        self._saved: dict[str, Any] = {} if ignore_saved else self._read()

    def _read(self) -> dict[str, Any]:
        try:
            saved = msgspec.json.decode(self._path.read_bytes()) if self._path else {}
        except (OSError, msgspec.DecodeError):
            return {}
        return saved if isinstance(saved, dict) else {}

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, if there are any."""
        tokens = self._saved.get("tokens")
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Save new tokens."""
        self._save("tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return how we are registered at the server, if we are."""
        client = self._saved.get("client")
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Save how we are registered at the server."""
        self._save("client", client_info)

    def _save(self, key: str, value: Any) -> None:
        self._saved[key] = value.model_dump(mode="json", exclude_none=True)
        if self._path is None:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._path, msgspec.json.encode(self._saved))
