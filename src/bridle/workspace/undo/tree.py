"""What a folder and everything below it held at one moment: plain values, and their bytes.

A file is known by the name of its content, a link by its target, a folder by its mode alone. Beside
that stands what the system said of it (size, times, inode), so that the next scan need not read
what has not changed. Does no I/O.
"""

import os
import stat
from collections.abc import Callable, Iterator
from hashlib import blake2b

import msgspec
from msgspec import Struct

IGNORED = "ignored"
TRACKED = "tracked"
_FORMAT = 1
_SUM = 16  # bytes of the checksum that an index begins with

WORDS = {
    IGNORED: "is ignored by git",
    "git": "belongs to git itself",
    "state": "is bridle's own",
    "large": "is too large to be kept",
    "special": "is a device, a pipe or a socket",
    "unreadable": "may not be read",
    "late": "was not kept: there was too much to keep",
    "store": "was not kept: it could not be written to bridle's state folder",
    "many": "was not looked at: there are too many files",
    "deep": "was not looked at: it lies too deep",
}


class State(Struct, frozen=True, gc=False, array_like=True):
    """What stands at a path. `mode` is the system's, with the kind of file; 0: nothing is there.

    `object` names a file's content, or is where a link leads. With `why` (a key of `WORDS`) the
    content is not kept; `object` then only tells whether it changed.
    """

    mode: int = 0
    object: str = ""
    why: str = ""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_unknown(self) -> bool:
        """Nobody looked, so that something may be there or not."""
        return not self.mode and bool(self.why)


ABSENT = State()


class Entry(Struct, frozen=True, gc=False, array_like=True):
    """A name in a folder: its state, and what the system said of it when that was found out.

    A folder that is ignored and has files in it which git keeps track of has `TRACKED` as `object`.
    """

    mode: int
    object: str = ""
    why: str = ""
    size: int = 0
    mtime: int = 0
    ctime: int = 0
    inode: int = 0

    @property
    def state(self) -> State:
        return State(self.mode, "" if stat.S_ISDIR(self.mode) else self.object, self.why)


class Folder(Struct, frozen=True, gc=False, array_like=True):
    """The names in one folder. `rules` stands for the ignore rules that hold in it.

    `why` says why it was not looked at.
    """

    rules: str = ""
    entries: dict[str, Entry] = {}
    why: str = ""


class Tree(Struct, frozen=True, array_like=True):
    """All folders below a root, by their path from it; the root itself is the empty path."""

    folders: dict[str, Folder] = {}

    def state(self, path: str) -> State:
        """What stood at a path, as far as this tree can say."""
        above, _, name = path.rpartition("/")
        folder = self.folders.get(above)
        if folder is not None:
            found = folder.entries.get(name)
            if found is not None:
                return found.state
            return State(why=folder.why) if folder.why else ABSENT
        if not above:
            return State(why="many")  # not even the root was looked at
        holder = self.state(above)
        if holder.why:
            return State(why=holder.why)
        return State(why="many") if holder.is_folder else ABSENT


def differing(old: Tree, new: Tree) -> Iterator[str]:
    """The paths that are not the same in both, in no order."""
    for path in old.folders.keys() | new.folders.keys():
        one, other = old.folders.get(path, _NONE), new.folders.get(path, _NONE)
        if one is other or one.entries is other.entries:
            continue
        prefix = f"{path}/" if path else ""
        for name in one.entries.keys() | other.entries.keys():
            was, now = one.entries.get(name), other.entries.get(name)
            if was is not now and (was is None or now is None or was.state != now.state):
                yield prefix + name


_NONE = Folder()


def spell(text: str) -> str:
    """A name as valid text: one that is not, as the hexadecimal of its bytes after a NUL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "\0" + os.fsencode(text).hex()
    return text


def unspell(text: str) -> str:
    """What `spell` was given."""
    return os.fsdecode(bytes.fromhex(text[1:])) if text.startswith("\0") else text


def as_text(path: str) -> str:
    """A path as valid text, for the log and for people."""
    return os.fsencode(path).decode(errors="backslashreplace")


class _Written(Struct, frozen=True, array_like=True):
    format: int
    spelled: bool
    folders: dict[str, Folder]


_decode = msgspec.msgpack.Decoder(_Written).decode


def encode(tree: Tree) -> bytes:
    """The tree as bytes, with a checksum before them."""
    try:
        data = msgspec.msgpack.encode(_Written(_FORMAT, False, tree.folders))
    except UnicodeEncodeError:  # names that are no text: rare, and dear
        folders = {spell(path): _respelled(one, spell) for path, one in tree.folders.items()}
        data = msgspec.msgpack.encode(_Written(_FORMAT, True, folders))
    return blake2b(data, digest_size=_SUM).digest() + data


def decode(data: bytes) -> Tree | None:
    """The tree of those bytes; None where they are damaged, or of another version."""
    body = memoryview(data)[_SUM:]
    if blake2b(body, digest_size=_SUM).digest() != data[:_SUM]:
        return None
    try:
        found = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if found.format != _FORMAT:
        return None
    folders = found.folders
    if found.spelled:
        folders = {unspell(path): _respelled(one, unspell) for path, one in folders.items()}
    return Tree(folders)


def _respelled(folder: Folder, change: Callable[[str], str]) -> Folder:
    entries = {
        change(name): msgspec.structs.replace(one, object=change(one.object))
        for name, one in folder.entries.items()
    }
    return msgspec.structs.replace(folder, entries=entries)
