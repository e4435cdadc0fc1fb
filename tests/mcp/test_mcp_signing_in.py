"""Servers at which a person signs in: the page on loopback, what is kept, and for whom."""

import asyncio
from pathlib import Path

import pytest

from bridle.cli.commands.mcp.login import Loopback
from bridle.config.mcp import parse_own_servers
from bridle.errors import ConfigError, ToolError
from bridle.runtime.mcp import make_server
from bridle.runtime.providers import known_secrets
from bridle.tools.mcp.oauth import TokenFile, oauth_provider
from bridle.tools.mcp.spec import ServerSpec
from rig import run


def test_a_person_comes_back_from_the_browser_with_a_code():
    async def ask(port, target):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer.split(b"\r\n", 1)[0]

    async def work():
        async with Loopback() as browser:
            port = int(browser.redirect_url.split(":")[2].split("/")[0])
            assert await ask(port, "/other?code=wrong") == b"HTTP/1.1 404 Not Found"
            assert await ask(port, "/callback?code=abc&state=s%20t") == b"HTTP/1.1 200 OK"
            assert await browser.callback() == {"code": "abc", "state": "s t"}
            with pytest.raises(ToolError, match="did not name a valid page"):
                await browser.open("file:///etc/passwd")

    run(work())


def test_without_a_person_it_is_said_how_to_sign_in(tmp_path):
    async def work():
        spec = ServerSpec("docs", url="https://example.com/mcp", tokens=str(tmp_path / "tokens"))
        auth = oauth_provider(spec, None)
        with pytest.raises(ToolError) as caught:
            await auth.context.redirect_handler("https://example.com/authorize")
        assert caught.value.message == "it wants you to sign in first: bridle mcp login docs"

    run(work())


def test_tokens_are_kept_for_nobody_else_to_read(tmp_path):
    from mcp.shared.auth import OAuthToken

    async def work():
        path = tmp_path / "mcp" / "tokens"
        await TokenFile(str(path)).set_tokens(OAuthToken(access_token="secret"))
        assert path.stat().st_mode & 0o077 == 0
        assert (await TokenFile(str(path)).get_tokens()).access_token == "secret"
        assert await TokenFile(str(path), ignore_saved=True).get_tokens() is None
        path.write_text("{broken")
        assert await TokenFile(str(path)).get_tokens() is None

    run(work())


def test_only_who_asked_for_it_signs_in(tmp_path):
    text = "mcp: {servers: {a: {url: 'https://x/mcp', auth: oauth}, b: {url: 'https://x/mcp'}}}"
    a, b = parse_own_servers(text, Path("config.yaml"))
    tokens = [make_server(one, tmp_path, tmp_path, {}).spec.tokens for one in (a, b)]
    assert [bool(one) for one in tokens] == [True, False]
    Path(tokens[0]).parent.mkdir()
    Path(tokens[0]).write_text('{"tokens": {"access_token": "given-for-consent"}}')
    make_server(a, tmp_path, tmp_path, {})
    assert "given-for-consent" in known_secrets({})  # no log says it
    with pytest.raises(ConfigError, match="can be `oauth`"):
        parse_own_servers("mcp: {servers: {a: {url: 'https://x', auth: basic}}}", Path("c.yaml"))
