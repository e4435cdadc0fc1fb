"""Modules of the standard library that the first picture does not need: a twentieth of its time.

While Textual is imported, and asyncio with it, they stand there unread. Whoever asks one for
anything makes it be read, in its own place; `read_all` reads the rest once the picture stands.
Knows nothing of Textual.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader

NAMES = {  # with what is in C behind each: without it the import has to fail at once
    "asyncio.sslproto": "_ssl",
    "bz2": "_bz2",
    "ipaddress": "",
    "lzma": "_lzma",
    "mimetypes": "",
    "ssl": "_ssl",
    "textwrap": "",
}
_unread: dict[str, "_Late"] = {}


class _Late:
    """Reads a module when something of it is asked for; once, also where two threads ask."""

    def __init__(self, real: "Loader") -> None:
        self._real = real
        self._lock = RLock()
        self._begun = False

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Only what the import system looks at is there from the beginning."""
        self._module = module
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        module.__dict__["__getattr__"] = self._ask
        _unread[module.__name__] = self

    def _ask(self, name: str) -> Any:
        self.read()
        try:
            return self._module.__dict__[name]
        except KeyError:
            if (own := self._module.__dict__.get("__getattr__")) is not None and own != self._ask:
                return own(name)
            told = f"module {self._module.__name__!r} has no attribute {name!r}"
            raise AttributeError(told, name=name, obj=self._module) from None

    def read(self) -> None:
        """What an import does; a module that cannot be read is asked again the next time."""
        with self._lock:
            if self._begun:
                return
            self._begun = True
            try:
                self._real.exec_module(self._module)
            except BaseException:
                self._begun = False
                raise
            if self._module.__dict__.get("__getattr__") == self._ask:
                del self._module.__dict__["__getattr__"]
            _unread.pop(self._module.__name__, None)


class _Finder:
    """Finds what everybody finds."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in NAMES or not _is_there(NAMES[name]):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Late(spec.loader)  # type: ignore[assignment]
        return spec


def _is_there(name: str) -> bool:
    return not name or name in sys.builtin_module_names or PathFinder.find_spec(name) is not None


@contextmanager
def unread() -> Iterator[None]:
    """What is imported inside and is one of these is read later."""
    sys.meta_path.insert(0, _Finder)
    try:
        yield
    finally:
        sys.meta_path.remove(_Finder)


def is_unread(name: str) -> bool:
    """Does it stand there, and nobody has asked it for anything?"""
    return name in _unread


def read_all() -> None:
    """Read what nobody has asked for so far."""
    for late in list(_unread.values()):
        late.read()
