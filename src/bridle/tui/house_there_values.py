"""What a server answers, as a house tells it; and the one file that is written for it here."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from pathlib import Path

from bridle.client import Choice, RemoteSession
from bridle.errors import ConfigError, SessionError
from bridle.events import MessageAdded, PromptReceived, Rewound
from bridle.tui.house import Named, is_same
from bridle.workspace import fs
from bridle.workspace.text import quantity

_NAMED = 3  # calls that are told by name


def to_named(choices: Iterable[Choice], chosen: str = "") -> tuple[Named, ...]:
    """What can be chosen; `chosen` is one of them, and first where the server does not name it."""
    found = tuple(
        Named(
            name=one.name,
            about=one.label,
            chosen=is_same(one.name, chosen) if chosen else one.default,
            why_not=one.why_not,
        )
        for one in choices
    )
    if chosen and not any(one.chosen for one in found):
        return (Named(name=chosen, chosen=True), *found)
    return found


def lines_of_rule(rule: str, calls: Sequence[str]) -> tuple[str, ...]:
    """A rule, what it would have covered, and where it goes."""
    several = f"{len(calls)} calls" if len(calls) > 1 else "one call"
    some = f": {', '.join(calls[:_NAMED])}" if calls else ""
    covered = f"it would have covered {several if calls else 'none'} of this session{some}"
    return f"{rule}, in this folder alone", covered, "into the server's own rules"


async def back(session: RemoteSession, turns: int) -> int:
    """The record just before the last so many turns that are still in the conversation."""
    prompts: dict[int, int] = {}  # received: its turn, by number of record
    begins: list[tuple[int, int]] = []  # turn, and the record of its first prompt
    newest = session.seq
    async with aclosing(session.subscribe()) as records:
        async for record in records:
            match record.event:
                case PromptReceived(turn=turn):
                    prompts[record.seq] = turn
                case MessageAdded(prompt=prompt) if prompt in prompts:
                    if not begins or begins[-1][0] != prompts[prompt]:
                        begins.append((prompts[prompt], prompt))
                case Rewound(to=to):
                    begins = [one for one in begins if one[1] <= to]
            if record.seq >= newest:
                break
    if not 0 < turns <= len(begins):
        count = quantity(len(begins), "turn")
        raise SessionError(f"the conversation has {count}, and {turns} were to go")
    return begins[-turns][1] - 1


async def write_private(path: Path, data: bytes, *, force: bool) -> tuple[Path, int]:
    """A file that only its owner can read, there whole or not at all: where, and its size."""
    return await asyncio.to_thread(_written, path, data, force)


def _written(path: Path, data: bytes, force: bool) -> tuple[Path, int]:
    place = Path.cwd() / path.expanduser()
    try:
        fs.write_private(place, data, sync=True, overwrite=force)
    except FileExistsError:
        raise ConfigError(
            f"{place} is there already, and was left as it is", hint="Name another file."
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{place} cannot be written: {error.strerror}", hint="Name another file."
        ) from error
    return place, len(data)
