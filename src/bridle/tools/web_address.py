"""Where a fetch may go: addresses of pages, hosts that the person named, machines that are public.

Pure. An address is taken apart once, here, and strictly: what another reader could understand
differently is refused.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import quote

from bridle.errors import ConfigError, ToolError
from bridle.workspace.text import one_line

LONGEST = 4096
_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"([a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::(\d{1,5}))?", re.I)
_PATTERN = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::(\d{1,5}))?|\[[0-9a-f:.]+\]:\d+")
_KEPT = "/?&=%:@!$'()*+,;~[]._-|^`{}\""
_PORTS = {"http": 80, "https": 443}

# Machines behind other addresses, and addresses that carry another one inside.
_HIDING = tuple(
    map(
        ipaddress.ip_network,
        (
            *("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"),
            *("2001::/32", "2002::/16", "fec0::/10", "fc00::/7", "fe80::/10", "100::/64"),
            *("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15"),
            "240.0.0.0/4",
        ),
    )
)


class Address(NamedTuple):
    """A page: how, at whom, and what is asked for there."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def place(self) -> str:
        """The host, with its port where that is not the usual one."""
        usual = self.port == _PORTS[self.scheme]
        return self.host if usual else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place}{self.target}"


def parse_url(url: str) -> Address:
    """An address taken apart. Raise `ToolError` for one that is not plainly a page of the web."""
    found = _URL.fullmatch(url)
    shown = f"`{one_line(url, 200)}`"
    if found is None:
        raise ToolError(f"{shown} is not an address of the web; it begins with https:// or http://")
    if len(url) > LONGEST or not url.isprintable() or " " in url or "\\" in url:
        raise ToolError(f"{shown} is too long, or has blanks or signs that no address has.")
    if "@" in found[2]:
        raise ToolError(f"{shown} has a name or a password in it; that is not sent.")
    authority = _AUTHORITY.fullmatch(found[2])
    if authority is None or not _is_host(authority[1]):
        raise ToolError(f"{shown} names no host that can be understood.")
    scheme, host = found[1].lower(), authority[1].lower()
    port = int(authority[2]) if authority[2] else _PORTS[scheme]
    if not 0 < port < 65536:
        raise ToolError(f"{shown} names a port that does not exist.")
    target = quote(found[3], safe=_KEPT)
    return Address(scheme, host, port, target if target.startswith("/") else f"/{target}")


def _is_host(host: str) -> bool:
    """What stands in brackets has to be an address of IPv6."""
    if not host.startswith("["):
        return True
    try:
        ipaddress.IPv6Address(host[1:-1])
    except ValueError:
        return False
    return True


def host_of(arguments: dict[str, Any]) -> str:
    """The host that a call would fetch from, as rules know it. Raise `ToolError`."""
    url = arguments.get("url")
    if not isinstance(url, str):
        raise ToolError("`url` is missing.")
    return parse_url(url).place


class Hosts:
    """The hosts that the person named: `docs.python.org`, `*.example.org`, `example.org:8080`."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(pattern.strip().lower() for pattern in patterns)
        for pattern in self._patterns:
            if _PATTERN.fullmatch(pattern) is None:
                raise ConfigError(
                    f"{one_line(pattern)!r} cannot be a host that may be fetched from.",
                    hint="Such as docs.python.org, *.example.org or example.org:8080.",
                )

    def __str__(self) -> str:
        return ", ".join(self._patterns)

    def allow(self, address: Address) -> bool:
        """Was this host, at this port, named?"""
        return any(_fits(pattern, address) for pattern in self._patterns)


def _fits(pattern: str, address: Address) -> bool:
    name, port = pattern, ""
    if not pattern.endswith("]"):
        head, colon, tail = pattern.rpartition(":")
        name, port = (head, tail) if colon else (pattern, "")
    if address.port != (int(port) if port else _PORTS[address.scheme]):
        return False
    if name.startswith("*."):
        return address.host.endswith(name[1:]) and len(address.host) > len(name) - 1
    return address.host == name


def is_public(address: str) -> bool:
    """Is it a machine that anybody may reach, and not one in here?"""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    hides = any(found in network for network in _HIDING if network.version == found.version)
    return found.is_global and not hides and not found.is_multicast and "%" not in address
