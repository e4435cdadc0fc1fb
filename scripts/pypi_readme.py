"""Build hook: the README that package indexes show, with absolute links.

README.md links to files of the repository with relative paths. A package index has no such files,
so each path is put behind the address of the repository, as [project.urls] gives it.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def with_absolute_links(text: str, files: str) -> str:
    """The Markdown with each relative path below `files`, the address of the repository's files."""
    pictures = files.replace("/blob/", "/raw/")

    def absolute(link: re.Match[str]) -> str:
        mark, words, path = link.groups()
        return f"{mark}[{words}]({pictures if mark else files}{path})"

    return _LINK.sub(absolute, text)


class ReadmeHook(MetadataHookInterface):
    """Sets the project's readme."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Take README.md; the address of the changelog says where the repository's files are."""
        files = metadata["urls"]["Changelog"].removesuffix("CHANGELOG.md")
        text = Path(self.root, "README.md").read_text()
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, files),
        }
