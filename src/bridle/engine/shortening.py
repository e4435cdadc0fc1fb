"""Which part of a conversation can go, and what is left of it. Pure; knows no model and no log.

A conversation is cut on step boundaries alone: a call and its result stay together or go together.
The prompts of the turn in progress are kept word for word, the newest steps as they are, and so is
every thought in what is kept: vendors seal them. What goes is handed back, to be summarised.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.budget import estimate
from bridle.messages import File, Image, Message, Part, Text, ToolOutput, Transcript
from bridle.workspace.text import one_line, shorten

WRITTEN, NOTED = "s", "n"  # how the id of a message ends that stands for others
_FRESH = 2  # the newest steps: nothing in them is touched while anything else will do
_OLD_OUTPUT = 1_500  # characters that are left of an old output
_LEAST_OUTPUT = 300
_OWN_WORDS = 5  # prompts whose beginning a note repeats
_BYTES = 3  # of a token, as `estimate` has it


class Plan(Struct, frozen=True):
    """What stays (`kept`), what goes (`old`), and how many outputs were cut.

    `spare` is the room that is left for what stands for the old part.
    """

    kept: tuple[Message, ...]
    old: tuple[Message, ...]
    shortened: int
    spare: int

    @property
    def tokens(self) -> int:
        """About how many tokens are left, with what stands for the old part."""
        return sum(map(estimate, self.kept)) + (self.spare if self.old else 0)


def plan(history: Transcript, target: int, spare: int) -> Plan:
    """Come down to `target` tokens, `spare` of which are for what stands for the old part.

    First old outputs are cut; if that is not enough, old steps go; if the newest step alone is too
    much, its outputs are cut, too. What comes out may still be too long: prompts are never cut.
    """
    messages = tuple(history)
    prompts, starts = _prompts(history), _starts(messages)
    fresh = starts[-_FRESH:][0] if starts else len(messages)
    slim = tuple(
        message if index >= fresh or index in prompts else slimmed(message)
        for index, message in enumerate(messages)
    )
    if sum(map(estimate, slim)) <= target:
        return Plan(slim, (), _changed(slim, messages), spare)
    at, said = _cut(slim, prompts, _newest(slim, starts, target), target - spare)
    gone = tuple(messages[index] for index in range(at) if index not in said)
    kept = (*(slim[index] for index in said if index < at), *slim[at:])
    kept = _squeezed(kept, target - spare if gone else target)
    return Plan(kept, gone, _changed(kept, messages), spare)


def _changed(kept: Sequence[Message], messages: Sequence[Message]) -> int:
    """How many parts are not as they were."""
    known = {id(part) for message in messages for part in message.parts}
    return sum(id(part) not in known for message in kept for part in message.parts)


def _starts(messages: Sequence[Message]) -> list[int]:
    """Where a step begins: at each reply."""
    return [index for index, message in enumerate(messages) if message.role == "assistant"]


def _prompts(history: Transcript) -> list[int]:
    """What the person said in the turn in progress: its prompts, and what steered it."""
    first = history.turn
    while first > 0 and history[first - 1].role == "user" and not stands_in(history[first - 1]):
        first -= 1
    return [
        index
        for index in range(first, len(history))
        if history[index].role == "user" and not stands_in(history[index])
    ]


def _cut(
    messages: Sequence[Message], prompts: list[int], newest: int, target: int
) -> tuple[int, list[int]]:
    """Where the kept part begins, and which prompts are kept even where they stand before it."""
    sizes = [estimate(message) for message in messages]
    left = target - sum(sizes[newest:])
    said: list[int] = []
    for index in reversed(prompts):
        if index < newest:
            if said and sizes[index] > left // 2:
                break  # a long one from before the newest: it need not fill what is left
            left -= sizes[index]
        said.append(index)
    at = newest
    for index in range(newest - 1, -1, -1):
        left -= 0 if index in said else sizes[index]
        if left < 0:
            break
        if messages[index].role != "tool":
            at = index
    return at, sorted(said)


def _newest(messages: Sequence[Message], starts: list[int], target: int) -> int:
    """Where the newest step begins.

    One after which the person spoke is history where it asked for nothing, or asked at such length
    that nothing else has room: otherwise no prompt would ever get a session going again.
    """
    if not starts:
        return len(messages)
    last = starts[-1]
    end = last + (2 if messages[last].tool_calls else 1)
    if end >= len(messages):
        return last
    return last if end == last + 2 and estimate(messages[last]) <= target // 2 else end


def slimmed(message: Message) -> Message:
    """An old message: long outputs with head and tail alone, a note for each picture and file."""
    if message.role == "assistant":
        return message
    parts = tuple(_slim(part) for part in message.parts)
    same = all(one is other for one, other in zip(parts, message.parts, strict=True))
    return message if same else replace(message, parts=parts)


def _slim(part: Part) -> Part:
    if isinstance(part, Image | File):
        return Text(_left_out(part))
    if isinstance(part, ToolOutput) and (part.media or len(part.text) > _OLD_OUTPUT):
        notes = [_left_out(one) for one in part.media]
        text = "\n".join([shorten(part.text, _OLD_OUTPUT), *notes])
        return replace(part, text=text, media=(), data=None)
    return part


def _left_out(part: Image | File) -> str:
    what = "A picture" if isinstance(part, Image) else "A file"
    named = getattr(part, "name", "") or part.media_type
    return f"[{what} was left out here to save room: {one_line(named, 100) or 'unnamed'}]"


def _squeezed(messages: tuple[Message, ...], target: int) -> tuple[Message, ...]:
    """Outputs cut to an equal share of the room, where there is too little for all."""
    over = sum(map(estimate, messages)) - target
    outputs = [part for message in messages for part in message.tool_results]
    if over <= 0 or not outputs:
        return messages
    taken = sum(map(estimate, messages)) - sum(_weight(one) for one in outputs)
    share = _share([_weight(one) for one in outputs], target - taken)
    return tuple(
        replace(message, parts=tuple(_fitted(part, share) for part in message.parts))
        if any(_weight(one) > share for one in message.tool_results)
        else message
        for message in messages
    )


def _weight(output: ToolOutput) -> int:
    return estimate(Message("tool", (output,)))


def _share(weights: list[int], room: int) -> int:
    """The most that each may have, so that all of them fit: small ones leave theirs to others."""
    left, count = room, len(weights)
    for weight in sorted(weights):
        if weight * count > left:
            break
        left -= weight
        count -= 1
    return max(_LEAST_OUTPUT // _BYTES, left // count) if count else max(weights)


def _fitted(part: Part, share: int) -> Part:
    if not isinstance(part, ToolOutput) or _weight(part) <= share:
        return part
    notes = [_left_out(one) for one in part.media]
    wide = max(1, len(part.text.encode()) // max(1, len(part.text)))  # bytes of a character
    text = shorten(part.text, max(_LEAST_OUTPUT, share * _BYTES // wide - 100))
    return replace(part, text="\n".join([text, *notes]), media=(), data=None)


def stands_in(message: Message) -> bool:
    """Is this what stands for a part that went?"""
    return message.role == "user" and message.id.endswith((WRITTEN, NOTED))


def stand_in(old: Sequence[Message], text: str, *, written: bool) -> Message:
    """The one message that stands for the old part. Its id and date are those of the last of it."""
    last = old[-1]
    name = f"{last.id.rstrip(WRITTEN + NOTED)}{WRITTEN if written else NOTED}"
    return Message("user", (Text(text),), name, last.created_at)


def note(old: Sequence[Message], most: int) -> str:
    """What went, in a few lines, where nobody can write a summary; at most so many characters."""
    called = Counter(call.name for message in old for call in message.tool_calls)
    lines = [f"[The beginning of this conversation was left out to save room: {len(old)} messages."]
    if called:
        named = ", ".join(f"{name} ({count})" for name, count in called.most_common(8))
        lines.append(f"Tools that were called in it: {one_line(named, 400)}.")
    said = [one for one in old if one.role == "user" and one.content.strip()]
    asked = [one_line(one.content, 200) for one in said if not stands_in(one)]
    if asked:
        lines.append("What was asked for, from the latest prompts in it:")
        lines += [f"- {one}" for one in asked[-_OWN_WORDS:]]
    lines[-1] += "]"
    earlier = [one.content for one in said if one.id.endswith(WRITTEN)]
    return shorten("\n\n".join([*earlier, "\n".join(lines)]), most)
