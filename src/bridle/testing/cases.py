"""A list of cases as tests: on a class for pytest, or run one after the other without it.

What a case checks, and what it is run on, is not known here.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, ClassVar

Case = Callable[[Any], Coroutine[Any, Any, None]]


class Cases:
    """Every case as a test method. A subclass says `setting`, and what it lacks."""

    cases: ClassVar[Mapping[str, Case]] = {}
    lacks: ClassVar[frozenset[str]] = frozenset()
    setting: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if unknown := cls.lacks - cls.cases.keys():
            raise TypeError(f"{cls.__name__} lacks cases that do not exist: {sorted(unknown)}")
        if "cases" in vars(cls):
            for name, case in cls.cases.items():
                setattr(cls, f"test_{name}", _as_test(case))
        for name in cls.lacks:
            setattr(cls, f"test_{name}", None)


def _as_test(case: Case) -> Callable[[Cases], None]:
    def test(self: Cases) -> None:
        asyncio.run(case(self.setting))

    test.__doc__ = case.__doc__
    return test


async def run_cases(
    cases: Mapping[str, Case], setting: Callable[[], Any], lacks: Iterable[str]
) -> list[str]:
    """Run every case; the names of those that ran. All that failed is in one AssertionError."""
    left_out = set(lacks)
    ran = [name for name in cases if name not in left_out]
    failed = []
    for name in ran:
        try:
            await cases[name](setting())
        except AssertionError as error:
            failed.append(f"{name}: {error}")
        except Exception as error:  # what is under test may raise anything
            failed.append(f"{name}: {error!r} was raised")
    if failed:
        raise AssertionError("\n".join([f"{len(failed)} of {len(ran)} cases failed", *failed]))
    return ran
