"""The chat's page as it is committed: built of these sources, small, nothing from elsewhere."""

import gzip
import re
import subprocess

import pytest

from web.test_page_build import NAMED, ROOT, WEB, Tags, built, files

PAGE = ROOT / "src" / "bridle" / "server" / "chat_page"
SOURCES = sorted((WEB / "chat" / "src").glob("*.ts*"))
FIRST_LOAD = 40 * 1024  # bytes, packed


@pytest.fixture(scope="module")
def page():
    return Tags((PAGE / "index.html").read_text())


def test_what_is_committed_is_what_the_sources_build(tmp_path):
    said = built("chat", str(tmp_path / "page"))
    assert (said.returncode, said.stderr) == (0, "")
    assert files(tmp_path / "page") == files(PAGE), "the chat's page is another now: run make page"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
@pytest.mark.parametrize("name", ["page", "chat_page"])
def test_everything_that_a_page_needs_is_committed(name):
    """A script that only this machine has would leave everybody else with an empty page."""
    folder = PAGE.parent / name
    listed = subprocess.run(
        ["git", "ls-files", "-z", "."], cwd=folder, capture_output=True, text=True, check=True
    )
    assert set(listed.stdout.strip("\0").split("\0")) == {str(one) for one in files(folder)}


def test_it_is_small_and_everything_comes_from_below_chat(page):
    named = [
        value for _, attrs in page.tags for key, value in attrs.items() if key in ("src", "href")
    ]
    shape = r"/chat/favicon\.svg|/chat/assets/[\w-]+-[\w-]{8}\.(js|css)"
    assert [one for one in named if not re.fullmatch(shape, one)] == []
    packed = [len(gzip.compress((PAGE / one.removeprefix("/chat/")).read_bytes())) for one in named]
    assert sum(packed) < FIRST_LOAD
    text = "".join(content.decode() for content in files(PAGE).values())
    found = set(re.findall(r"https?://[\w./:-]+", text))
    assert {one for one in found if not NAMED.fullmatch(one)} == set()


def test_nothing_runs_that_stands_in_the_page_and_no_text_becomes_markup(page):
    assert page.inside == []
    inline = [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert inline == []
    wrong = r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\("
    assert [path.name for path in SOURCES if re.search(wrong, path.read_text())] == []


def test_every_source_says_what_it_is():
    assert len(SOURCES) > 8
    assert [path.name for path in SOURCES if not path.read_text().startswith(("// ", "/**"))] == []
