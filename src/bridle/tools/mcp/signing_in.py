"""Signing in at a server that wants a person's consent: OAuth, by the SDK, where it was asked for.

The tokens lie in one private file of the state folder. Consent is given in a browser, so it takes a
visitor: without one, whoever calls is told how to sign in.
"""

from pathlib import Path
from typing import Any, Protocol

import httpx2
import msgspec
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from bridle.errors import ToolError
from bridle.tools.mcp.spec import Spec
from bridle.workspace.fs import write_private

_NOWHERE = "http://127.0.0.1:1/callback"  # where nobody waits for consent


class Visitor(Protocol):
    """Somebody who can look at a page, and is sent back from it."""

    @property
    def address(self) -> str:
        """Where they are to be sent back to."""
        ...

    async def visit(self, url: str) -> None:
        """Have them look at that page."""
        ...

    async def returned(self) -> dict[str, str]:
        """What they were sent back with: `code`, `state`, and `iss` where there is one."""
        ...


def signing_in(spec: Spec, visitor: Visitor | None) -> httpx2.Auth:
    """What signs requests to that server, and asks for consent where there is none yet."""

    async def visit(url: str) -> None:
        if visitor is None:
            raise ToolError(f"it wants you to sign in first: bridle mcp login {spec.name}")
        await visitor.visit(url)

    async def returned() -> AuthorizationCodeResult:
        assert visitor is not None  # `visit` came first
        found = await visitor.returned()
        if "code" not in found:
            raise ToolError(f"signing in was refused: {found.get('error', 'no code came back')}")
        return AuthorizationCodeResult.model_validate(found)

    address = visitor.address if visitor is not None else _NOWHERE
    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "bridle", "redirect_uris": [address]}
    )
    tokens = Tokens(spec.tokens, anew=visitor is not None)
    return OAuthClientProvider(spec.url, metadata, tokens, visit, returned)


class Tokens:
    """What was given for consent, in a file; `anew`: as if there were none."""

    def __init__(self, path: str, *, anew: bool = False) -> None:
        self._path = Path(path) if path else None
        self._kept: dict[str, Any] = {} if anew else self._read()

    def _read(self) -> dict[str, Any]:
        try:
            found = msgspec.json.decode(self._path.read_bytes()) if self._path else {}
        except (OSError, msgspec.DecodeError):
            return {}
        return found if isinstance(found, dict) else {}

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens, if there are any."""
        found = self._kept.get("tokens")
        return OAuthToken.model_validate(found) if found else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep new ones."""
        self._keep("tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """As what we are known there."""
        found = self._kept.get("client")
        return OAuthClientInformationFull.model_validate(found) if found else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep as what we are known."""
        self._keep("client", client_info)

    def _keep(self, key: str, value: Any) -> None:
        self._kept[key] = value.model_dump(mode="json", exclude_none=True)
        if self._path is None:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._path, msgspec.json.encode(self._kept))
