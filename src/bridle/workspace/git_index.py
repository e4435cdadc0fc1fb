"""Git's index, as far as it matters here: the paths at which other repositories are linked in.

Pure. Raises `ValueError` for what is not an index that git would read in the same way.
"""

from collections.abc import Iterator

_LINK = 0o160000  # the mode of a link to another repository
_BEFORE_HASH = 40  # bytes of an entry
_HASHES = (20, 32)  # the index does not say which


def gitlinks(data: bytes) -> list[str]:
    """The paths of all links to other repositories."""
    if data[:4] != b"DIRC" or data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3", b"\0\0\0\4"):
        raise ValueError("not an index")
    if _LINK.to_bytes(4, "big") not in data:  # most have none: no need to walk the entries
        return []
    for size in _HASHES:
        try:
            found = [path for mode, path in _entries(data, size) if mode == _LINK]
        except (ValueError, IndexError):
            continue
        return [path.decode("utf-8", "surrogateescape") for path in found]
    raise ValueError("not an index")


def tracked(data: bytes) -> list[str]:
    """The paths of everything that git keeps track of."""
    if data[:4] != b"DIRC" or data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3", b"\0\0\0\4"):
        raise ValueError("not an index")
    for size in _HASHES:
        try:
            return [path.decode("utf-8", "surrogateescape") for _, path in _entries(data, size)]
        except (ValueError, IndexError):
            continue
    raise ValueError("not an index")


def _entries(data: bytes, hash_size: int) -> Iterator[tuple[int, bytes]]:
    """Mode and path of each entry."""
    version, count = data[7], int.from_bytes(data[8:12], "big")
    at, before = 12, b""
    for _ in range(count):
        start = at
        mode = int.from_bytes(data[start + 24 : start + 28], "big")
        at += _BEFORE_HASH + hash_size
        at += 4 if data[at] & 0x40 else 2  # flags, and more flags
        strip = 0
        if version == 4:
            strip, at = _number(data, at)
        end = data.index(b"\0", at)
        path = before[: len(before) - strip] + data[at:end] if version == 4 else data[at:end]
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        before = path
        yield mode, path
    _check_end(data, at, hash_size)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) + (data[at] & 0x7F)
    return value, at + 1


def _check_end(data: bytes, at: int, hash_size: int) -> None:
    """After the entries come extensions, each with its length, and a hash: no byte is left."""
    end = len(data) - hash_size
    while at < end:
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    if at != end:
        raise ValueError("the index does not end where it should")
