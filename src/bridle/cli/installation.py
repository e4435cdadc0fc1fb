"""The installed package: does every file of it still come from our own distribution?

The package `bridle` is published as the distribution `bridle-agent`. The Python Package Index has
an unrelated distribution named `bridle`, with a package and a command of the same name: installed
into the same environment, the two overwrite each other's files.

Works with a package that is damaged: imports as little of it as possible.
"""

import hashlib
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple, NoReturn

from bridle.distribution import NAME as DISTRIBUTION

REPAIR = (
    f"Reinstall it: pip uninstall -y bridle {DISTRIBUTION}; pip install '{DISTRIBUTION}[all]'. "
    "If you need the other package too, install it in an environment of its own."
)
_PACKAGE = Path(__file__).resolve().parent.parent
_MOST = 3  # file names in a message


class _Owner(NamedTuple):
    """A distribution that installed files of our package; those that are not as it left them."""

    name: str
    version: str
    changed: tuple[str, ...]


def damage() -> str:
    """Say what is wrong with the installed files; empty if nothing is."""
    found = list(_installed())
    ours = next((one for one in found if one.name == DISTRIBUTION), None)
    others = [one for one in found if one.name != DISTRIBUTION]
    changed = ours.changed if ours else ()
    if others:
        names = " and ".join(f"{one.name} {one.version}" for one in others)
        said = f"another distribution, {names}, installs a package named `bridle` as well"
        if changed:
            return f"{said}, and has replaced files of {DISTRIBUTION}: {_listed(changed)}"
        return f"{said}; uninstalling either of the two removes files of the other"
    missing = [name for name in changed if not (_PACKAGE.parent / name).exists()]
    if missing:
        return f"files of {DISTRIBUTION} are missing: {_listed(missing)}"
    return ""


def stop(error: BaseException) -> NoReturn:
    """End the program if the package itself cannot be imported. Re-raise `error` if it is whole."""
    said = damage()
    if not said:
        raise error
    sys.stderr.write(f"bridle: cannot start: {said}\n  → {REPAIR}\n")
    raise SystemExit(1)


def _installed() -> Iterator[_Owner]:
    """The distributions that list files of the very package that is running."""
    for one in distributions():
        record = one.read_text("RECORD") or ""
        if "\nbridle/" not in f"\n{record}":  # an editable install lists none
            continue
        if Path(str(one.locate_file("bridle"))).resolve() == _PACKAGE:
            yield _compared(one)


def _compared(distribution: Distribution) -> _Owner:
    changed = []
    for file in distribution.files or ():
        name = file.as_posix()
        if not name.startswith("bridle/") or file.hash is None:
            continue
        try:
            digest = hashlib.new(file.hash.mode, (_PACKAGE.parent / name).read_bytes()).digest()
        except OSError:
            digest = b""
        if urlsafe_b64encode(digest).decode().rstrip("=") != file.hash.value:
            changed.append(name)
    name = distribution.metadata["Name"].lower().replace("_", "-")
    return _Owner(name, distribution.version, tuple(sorted(changed)))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST])
    return f"{shown} and {len(names) - _MOST} more" if len(names) > _MOST else shown
