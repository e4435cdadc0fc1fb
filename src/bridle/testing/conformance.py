"""The provider conformance suite: what every provider has to do, run on yours.

With pytest, a class is enough:

    class TestMine(ProviderConformance):
        fake = FakeAnthropic

        def provider_for(self, server):
            return Mine("model", api_key=KEY, base_url=server.url)

Without pytest: `await check_provider(FakeAnthropic, lambda server: Mine(…))`. A provider without
a server of its own overrides `setting`. `lacks` names the cases that its API has no words for.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import ClassVar

from bridle.protocols.provider import Provider
from bridle.testing import fault_cases, reply_cases
from bridle.testing.bench import KEY, Stage, serve
from bridle.testing.cases import Case, Cases, run_cases
from bridle.testing.script import WireScriptable
from bridle.testing.server import FakeServer

__all__ = ["CASES", "KEY", "ProviderConformance", "Stage", "check_provider"]

CASES: dict[str, Case] = {case.__name__: case for case in (*reply_cases.CASES, *fault_cases.CASES)}


class ProviderConformance(Cases):
    """Every case as a test. Subclass it, say `fake` and `provider_for`."""

    fake: ClassVar[type[FakeServer]]
    cases = CASES

    def provider_for(self, server: FakeServer) -> Provider:
        """The provider under test, pointed at this server, with `KEY` as its key."""
        raise NotImplementedError

    @asynccontextmanager
    async def setting(self, *script: WireScriptable) -> AsyncIterator[Stage]:
        """A provider whose model will answer with this script."""
        async with serve(self.fake, self.provider_for)(*script) as stage:
            yield stage


async def check_provider(
    fake: type[FakeServer],
    provider_for: Callable[[FakeServer], Provider],
    *,
    lacks: Iterable[str] = (),
) -> list[str]:
    """Run every case; the names of those that ran. All that failed is in one AssertionError."""
    return await run_cases(CASES, lambda: serve(fake, provider_for), lacks)
