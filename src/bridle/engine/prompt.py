"""A prompt as it comes in: its parts, looked at before anything is recorded."""

from collections.abc import Iterable
from typing import get_args

from bridle.errors import EmptyPrompt, SessionError
from bridle.events import When
from bridle.messages import File, Image, Part, Text, as_parts, sound
from bridle.promises.session import Prompt

_WHENS: tuple[str, ...] = get_args(When)


def checked(prompt: Prompt, when: str = "idle") -> tuple[Part, ...]:
    """A prompt's parts; one that says nothing, or comes at no time that there is, is refused."""
    if when not in _WHENS:
        raise SessionError(
            f"a prompt cannot be sent {when!r}", hint=f"`when` is {', '.join(_WHENS)}."
        )
    if not isinstance(prompt, Iterable):
        raise SessionError(
            f"a prompt cannot be {prompt!r}", hint="A prompt is text, or a list of parts."
        )
    parts = as_parts(prompt)
    if strange := [part for part in parts if not isinstance(part, Text | Image | File)]:
        raise SessionError(
            f"a prompt cannot hold {type(strange[0]).__name__}",
            hint="A prompt is made of text, images and files.",
        )
    parts = tuple(Text(sound(part.text)) if isinstance(part, Text) else part for part in parts)
    says = any(not isinstance(part, Text) or part.text.strip() for part in parts)
    if not says:
        raise EmptyPrompt("the prompt is empty", hint="Say what you want done.")
    return parts
