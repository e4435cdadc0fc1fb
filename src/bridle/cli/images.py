"""Pictures for a prompt: checked by what they are, not by what they are called."""

import base64
from pathlib import Path

import click

from bridle.messages import Image
from bridle.workspace.text import MOST_PICTURE_BYTES, media_type_of


def load_image(path: Path) -> Image:
    """A picture as a part of a prompt."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_PICTURE_BYTES + 1)
    except OSError as error:
        raise click.UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MOST_PICTURE_BYTES:
        raise click.UsageError(
            f"{path}: larger than {MOST_PICTURE_BYTES / 1_000_000} MB, which no vendor takes\n"
            "Make the picture smaller."
        )
    media_type = media_type_of(data)
    if not media_type:
        raise click.UsageError(f"{path}: this is not a PNG, JPEG, GIF or WebP picture")
    return Image(media_type, base64.b64encode(data).decode())
