"""A prompt as it comes in: its parts, looked at before anything is recorded."""

from bridle.errors import EmptyPrompt, SessionError
from bridle.messages import File, Image, Part, Text, as_parts, sound
from bridle.promises.session import Prompt


def checked(prompt: Prompt) -> tuple[Part, ...]:
    """A prompt's parts; a prompt that says nothing is refused."""
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
