"""A fake vendor server from the command line: `python -m bridle.testing.serve anthropic`.

Prints its base URL and serves a script (the scripted provider's file, wire faults allowed) until
it is interrupted. Knows nothing that the servers do not know.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bridle.errors import AgentError, ConfigError
from bridle.testing.anthropic import FakeAnthropic
from bridle.testing.openai import FakeOpenAI
from bridle.testing.server import FakeServer

_FAKES: dict[str, type[FakeServer]] = {"anthropic": FakeAnthropic, "openai": FakeOpenAI}
_HELLO: dict[str, Any] = {"replies": ["Hello from a fake server."], "loop": True}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m bridle.testing.serve")
    parser.add_argument("vendor", choices=sorted(_FAKES))
    parser.add_argument("--script", type=Path, help="a JSON file with replies")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--lenient", action="store_true", help="serve requests that break rules")
    given = parser.parse_args(arguments)
    try:
        server = _make(_FAKES[given.vendor], given.script, strict=not given.lenient)
        asyncio.run(_serve(server, given.port))
    except AgentError as error:
        sys.stderr.write(f"{error}\n{error.hint}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _make(fake: type[FakeServer], script: Path | None, *, strict: bool) -> FakeServer:
    told = _HELLO if script is None else _read(script)
    return fake(told["replies"], loop=bool(told.get("loop")), strict=strict)


def _read(script: Path) -> dict[str, Any]:
    hint = 'A script looks like {"replies": [{"text": "…"}, …]}.'
    try:
        told = msgspec.json.decode(script.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{script} cannot be used: {error}", error, hint=hint) from error
    if not isinstance(told.get("replies"), list):
        raise ConfigError(f"{script} has no list of replies", hint=hint)
    return told


async def _serve(server: FakeServer, port: int) -> None:
    await server.start(port)
    try:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()
    finally:
        await server.stop()


if __name__ == "__main__":
    raise SystemExit(main())
