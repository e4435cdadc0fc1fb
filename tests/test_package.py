"""What a package index shows of the built package."""

import re
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUILD = "import sys; from hatchling.build import prepare_metadata_for_build_wheel as prepare"


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    """The metadata of the wheel, as the build backend writes it."""
    folder = tmp_path_factory.mktemp("metadata")
    words = [sys.executable, "-c", f"{BUILD}; prepare(sys.argv[1])", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True)
    (file,) = folder.glob("*.dist-info/METADATA")
    return message_from_bytes(file.read_bytes())


def test_no_link_or_picture_of_the_readme_is_relative_and_each_leads_to_a_file(metadata):
    assert metadata["Description-Content-Type"] == "text/markdown"
    readme = metadata.get_payload(decode=True).decode()
    targets = re.findall(r"\]\(([^)]*)\)", readme) + re.findall(r"(?:src|href)=\"([^\"]*)", readme)
    assert len(targets) > 5
    (files,) = [
        url.removesuffix("CHANGELOG.md")
        for name, _, url in (one.partition(", ") for one in metadata.get_all("Project-URL"))
        if name == "Changelog"
    ]
    for target in targets:
        assert re.match("https?://", target), target
        path = target.replace("/raw/", "/blob/").removeprefix(files)
        assert path == target or (ROOT / path).exists(), target


def test_the_readme_says_the_same_as_in_the_repository(metadata):
    words = re.sub(r"\]\([^)]*\)", "]", metadata.get_payload(decode=True).decode())
    own = re.sub(r"\]\([^)]*\)", "]", (ROOT / "README.md").read_text())
    assert words.split() == own.split()
