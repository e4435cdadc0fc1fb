"""A search that another agent makes by its own means: it reads what ours would pass over.

Our own tool leaves credentials out of what it searches; whether somebody else's does, nobody knows.
So what lies below is asked of the ground, as it is for a command, and rules about files are heeded.
Decides nothing.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bridle.policy import Act, Facts, Rule

if TYPE_CHECKING:
    from bridle.messages import ToolCall
    from bridle.promises.ground import Ground, Place

SWEEPS = frozenset({"grep"})  # tools that read every file below a folder
_READ = Act(("read",))
_RULED = "a rule is about files that may lie in {}, and the agent's own search would read them"
_CROWDED = "{} has too many files to look for credentials in them"


def swept(
    call: "ToolCall", facts: Facts, ground: "Ground | None", rules: Sequence[Rule] = ()
) -> Facts:
    """What is known of such a search, with all that it would come by."""
    if ground is None or facts.floor or not facts.acts:
        return facts
    places: list[Place] = []
    guards = [facts.guard]
    for act in facts.acts:
        if not Path(ground.root, act.subject).is_dir():
            continue
        found = _delicate(act.subject, call, ground)
        if found is None:
            guards.append(_CROWDED.format(act.subject))
        places += found or ()
        if any(map(_is_about_some_files, rules)):
            guards.append(_RULED.format(act.subject))
    guards[1:1] = [_words(place) for place in places if place.reading == "ask"][:1]
    floor = next((_words(place) for place in places if place.reading == "deny"), "")
    more = tuple(
        Act((call.name, "read"), place.path, "reads", is_path=True, minor=True) for place in places
    )
    said = "; ".join(filter(None, guards))
    return replace(facts, acts=(*facts.acts, *more), floor=floor, guard=said)


def _delicate(folder: str, call: "ToolCall", ground: "Ground") -> "tuple[Place, ...] | None":
    """What takes care to read below a folder, and has a name that is looked for."""
    found = ground.delicate(folder, ground.root)
    return None if found is None else tuple(_places(folder, found, call, ground))


def _places(
    folder: str, found: tuple[str, ...], call: "ToolCall", ground: "Ground"
) -> "Iterator[Place]":
    if not found:
        return
    from bridle.commands.searches import is_wanted

    wanted = call.arguments.get("glob")
    names = (wanted.rpartition("/")[2],) if isinstance(wanted, str) and wanted[:1] != "!" else ()
    for path in found:
        if is_wanted(path.rpartition("/")[2], names):
            place = ground.place(f"{folder}/{path}", ground.root)
            if place.inside and place.reading:
                yield place


def _is_about_some_files(rule: Rule) -> bool:
    """Does it forbid, or ask about, reading some files and not others?"""
    if rule.verdict == "allow" or rule.pattern == "*":
        return False
    return replace(rule, pattern="*").speaks_of(_READ)


def _words(place: "Place") -> str:
    return f"reads {place.path}: {place.why}" if place.why else f"reads {place.path}"
