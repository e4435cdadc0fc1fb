"""What a folder and everything below it held at one moment: plain values, and their bytes.

A file is known by the name of its content, a link by its target, a folder by its mode alone. With
that comes the system's status of it (size, times, inode), so that the next scan need not read what
has not changed. Does no I/O.
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
    """What is at a path. `mode` is the system's, with the kind of file; 0 if nothing is there.

    `object` names a file's content, or is the target of a link. With `why` (a key of `WORDS`) the
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
        """Was it not looked at, so that something may be there or not?"""
        return not self.mode and bool(self.why)


ABSENT = State()


class Entry(Struct, frozen=True, gc=False, array_like=True):
    """A name in a folder: its state, and the system's status of it at that time.

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
        """Return what was at a path, as far as this tree can tell."""
        above, _, name = path.rpartition("/")
        folder = self.folders.get(above)
        if folder is not None:
            entry = folder.entries.get(name)
            if entry is not None:
                return entry.state
            return State(why=folder.why) if folder.why else ABSENT
        if not above:
            return State(why="many")  # not even the root was looked at
        holder = self.state(above)
        if holder.why:
            return State(why=holder.why)
        return State(why="many") if holder.is_folder else ABSENT


def changed_paths(old: Tree, new: Tree) -> Iterator[str]:
    """Yield the paths that are not the same in both trees, in no order."""
    for path in old.folders.keys() | new.folders.keys():
        before, after = old.folders.get(path, _NONE), new.folders.get(path, _NONE)
        if before is after or before.entries is after.entries:
            continue
        prefix = f"{path}/" if path else ""
        for name in before.entries.keys() | after.entries.keys():
            was, now = before.entries.get(name), after.entries.get(name)
            if was is not now and (was is None or now is None or was.state != now.state):
                yield prefix + name


_NONE = Folder()


def spell(text: str) -> str:
    """Return a name as valid text. One that is not becomes a NUL and its bytes as hexadecimal."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "\0" + os.fsencode(text).hex()
    return text


def unspell(text: str) -> str:
    """Undo `spell`."""
    return os.fsdecode(bytes.fromhex(text[1:])) if text.startswith("\0") else text


def as_text(path: str) -> str:
    """Return a path as valid text, for the log and for people."""
    return os.fsencode(path).decode(errors="backslashreplace")


class _TreeFile(Struct, frozen=True, array_like=True):
    format: int
    spelled: bool
    folders: dict[str, Folder]


_decode = msgspec.msgpack.Decoder(_TreeFile).decode


def encode(tree: Tree) -> bytes:
    """Encode a tree, with a checksum before it."""
    try:
        data = msgspec.msgpack.encode(_TreeFile(_FORMAT, False, tree.folders))
    except UnicodeEncodeError:  # names that are not text: rare, and expensive
        folders = {spell(path): _respell(folder, spell) for path, folder in tree.folders.items()}
        data = msgspec.msgpack.encode(_TreeFile(_FORMAT, True, folders))
    return blake2b(data, digest_size=_SUM).digest() + data


def decode(data: bytes) -> Tree | None:
    """Decode a tree. Return None if it is damaged, or of another version."""
    body = memoryview(data)[_SUM:]
    if blake2b(body, digest_size=_SUM).digest() != data[:_SUM]:
        return None
    try:
        written = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if written.format != _FORMAT:
        return None
    folders = written.folders
    if written.spelled:
        folders = {unspell(path): _respell(folder, unspell) for path, folder in folders.items()}
    return Tree(folders)


def _respell(folder: Folder, change: Callable[[str], str]) -> Folder:
    entries = {
        change(name): msgspec.structs.replace(entry, object=change(entry.object))
        for name, entry in folder.entries.items()
    }
    return msgspec.structs.replace(folder, entries=entries)
