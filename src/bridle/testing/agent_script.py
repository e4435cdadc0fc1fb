"""What an agent under test is to do: a few acts, by the prompt that asks for them. Values."""

from collections.abc import Mapping

from msgspec import Struct


class Say(Struct, frozen=True):
    """Write this text, streamed."""

    text: str


class Write(Struct, frozen=True):
    """Write this file of the workspace by the agent's own means, after asking; once."""

    path: str
    content: str


class Wait(Struct, frozen=True):
    """Work on something that does not end by itself."""


class Fail(Struct, frozen=True):
    """Break: raise, or come back with an error."""


Act = Say | Write | Wait | Fail
Script = Mapping[str, tuple[Act, ...]]


def acts_for(script: Script, prompt: str) -> tuple[Act, ...]:
    """The acts of the key that the prompt holds; the last of several, as in a longer history."""
    found = [key for key in script if key in prompt]
    return script[max(found, key=prompt.rindex)] if found else ()
