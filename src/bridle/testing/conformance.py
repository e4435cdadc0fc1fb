"""The provider conformance suite: what every provider has to do, run on yours.

With pytest, a class is enough:

    class TestMine(ProviderConformance):
        fake = FakeAnthropic

        def provider_for(self, server):
            return Mine("model", api_key=KEY, base_url=server.url)

Without pytest: `await check_provider(FakeAnthropic, lambda server: Mine(…))`. A provider without
a server of its own overrides `setting`. `lacks` names the cases that its API has no words for.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from bridle.promises.provider import Provider
from bridle.testing import fault_cases, reply_cases
from bridle.testing.bench import KEY, Setting, Stage, serve
from bridle.testing.script import WireScriptable
from bridle.testing.server import FakeServer

__all__ = ["CASES", "KEY", "ProviderConformance", "Stage", "check_provider"]

Case = Callable[[Setting], Coroutine[Any, Any, None]]
CASES: dict[str, Case] = {case.__name__: case for case in (*reply_cases.CASES, *fault_cases.CASES)}


class ProviderConformance:
    """Every case as a test. Subclass it, say `fake` and `provider_for`."""

    fake: ClassVar[type[FakeServer]]
    lacks: ClassVar[frozenset[str]] = frozenset()

    def provider_for(self, server: FakeServer) -> Provider:
        """The provider under test, pointed at this server, with `KEY` as its key."""
        raise NotImplementedError

    @asynccontextmanager
    async def setting(self, *script: WireScriptable) -> AsyncIterator[Stage]:
        """A provider whose model will answer with this script."""
        async with serve(self.fake, self.provider_for)(*script) as stage:
            yield stage

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if unknown := cls.lacks - CASES.keys():
            raise TypeError(f"{cls.__name__} lacks cases that do not exist: {sorted(unknown)}")
        for name in cls.lacks:
            setattr(cls, f"test_{name}", None)


def _as_test(case: Case) -> Callable[[ProviderConformance], None]:
    def test(self: ProviderConformance) -> None:
        asyncio.run(case(self.setting))

    test.__doc__ = case.__doc__
    return test


for _name, _case in CASES.items():
    setattr(ProviderConformance, f"test_{_name}", _as_test(_case))


async def check_provider(
    fake: type[FakeServer],
    provider_for: Callable[[FakeServer], Provider],
    *,
    lacks: Iterable[str] = (),
) -> list[str]:
    """Run every case; the names of those that ran. All that failed is in one AssertionError."""
    left_out = set(lacks)
    ran = [name for name in CASES if name not in left_out]
    failed = []
    for name in ran:
        try:
            await CASES[name](serve(fake, provider_for))
        except AssertionError as error:
            failed.append(f"{name}: {error}")
        except Exception as error:  # the provider under test may raise anything
            failed.append(f"{name}: {error!r} was raised")
    if failed:
        raise AssertionError("\n".join([f"{len(failed)} of {len(ran)} cases failed", *failed]))
    return ran
