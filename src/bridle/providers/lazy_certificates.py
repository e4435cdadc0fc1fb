"""Imports aiohttp without reading the system's certificates.

aiohttp reads them while it is imported, which is a quarter of the time to a first request, also for
a model on this machine, which needs none. Here the same context reads them when it is first used.
"""

import ssl
import sys
import threading
from typing import Any


class LazyCertificates(ssl.SSLContext):
    """A context whose default certificates are read by the first connection that asks for them."""

    purposes: tuple[ssl.Purpose, ...] = ()

    def _read(self) -> None:
        for purpose in self.purposes:  # twice, if two threads come at once: that does no harm
            super().load_default_certs(purpose)
        self.purposes = ()

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        self._read()
        return super().wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        self._read()
        return super().wrap_socket(*arguments, **options)

    def get_ca_certs(self, *arguments: Any) -> Any:
        self._read()
        return super().get_ca_certs(*arguments)

    def cert_store_stats(self) -> dict[str, int]:
        self._read()
        return super().cert_store_stats()


def import_aiohttp() -> None:
    """Import it; the contexts made meanwhile, by this thread, are unhurried ones.

    Where it is there already, nothing is touched.
    """
    if "aiohttp.connector" in sys.modules:
        return
    load, here = ssl.SSLContext.load_default_certs, threading.get_ident()

    def later(self: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
        if threading.get_ident() != here or type(self) is not ssl.SSLContext:
            load(self, purpose)
            return
        self.__class__ = LazyCertificates
        self.purposes = (*self.purposes, purpose)  # type: ignore[attr-defined]  # it is one now

    ssl.SSLContext.load_default_certs = later  # type: ignore[method-assign]  # for this import
    try:
        import aiohttp.connector  # noqa: F401 - for what it makes when it is imported
    finally:
        ssl.SSLContext.load_default_certs = load  # type: ignore[method-assign]  # as it was
