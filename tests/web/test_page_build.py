"""The page as it is committed: built of these sources, small, and with nothing from elsewhere."""

import gzip
import hashlib
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
WEB = ROOT / "web"
PAGE = ROOT / "src" / "bridle" / "server" / "page"
PLACE = ROOT / ".cache" / "web"
FIRST_LOAD = 120 * 1024  # bytes, packed

# Namespaces, and addresses that libraries name in comments and messages: nobody goes there.
NAMED = re.compile(
    r"http://www\.w3\.org/(1998/Math/MathML|1999/xhtml|1999/xlink|2000/svg|XML/1998/namespace|2000/xmlns/)"
    r"|https://github\.com/(cure53|markedjs|highlightjs)/[\w./-]*"
)


def built(*arguments):
    """What scripts/build-page says; its packages must be there, for tests reach no registry."""
    wanted = (WEB / "package.json").read_bytes() + (WEB / "package-lock.json").read_bytes()
    stamp = PLACE / ".ready"
    fresh = stamp.is_file() and stamp.read_text().strip() == hashlib.sha256(wanted).hexdigest()
    assert fresh, "what the page is built with is not there as wanted: run scripts/build-page"
    line = [ROOT / "scripts" / "build-page", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class Tags(HTMLParser):
    """The tags of a page with their attributes, and what stands inside of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inside, self._in = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._in = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._in = False

    def handle_data(self, data):
        if self._in and data.strip():
            self.inside.append(data)


@pytest.fixture(scope="module")
def page():
    return Tags((PAGE / "index.html").read_text())


def test_what_is_committed_is_what_the_sources_build(tmp_path):
    said = built("build", str(tmp_path / "page"))
    assert (said.returncode, said.stderr) == (0, "")
    assert files(tmp_path / "page") == files(PAGE), "the page is another now: run make page"


def test_the_types_hold():
    said = built("types")
    assert (said.returncode, said.stdout) == (0, "")


def test_the_folds_and_parsers_of_the_page_do_what_their_tests_say():
    said = built("test")
    found = dict(re.findall(r"^# (tests|pass|fail) (\d+)$", said.stdout, re.MULTILINE))
    assert said.returncode == 0, said.stdout[-4000:]
    assert (found["pass"], found["fail"]) == (found["tests"], "0")
    assert int(found["tests"]) >= 10


def test_the_first_load_is_small(page):
    loaded = [
        attrs.get("src") or attrs.get("href")
        for tag, attrs in page.tags
        if tag in ("script", "link")
    ]
    assert len(loaded) >= 3
    all_files = [PAGE / "index.html", *(PAGE / name.removeprefix("/") for name in loaded)]
    packed = {path.name: len(gzip.compress(path.read_bytes())) for path in all_files}
    assert sum(packed.values()) < FIRST_LOAD, packed


def test_no_script_and_no_style_stands_in_the_page_itself(page):
    assert page.inside == []
    inline = [
        (tag, name)
        for tag, attrs in page.tags
        for name in attrs
        if name == "style" or name.startswith("on")
    ]
    assert inline == []


def test_everything_is_loaded_from_here_under_names_that_tell_versions_apart(page):
    named = [
        value for _, attrs in page.tags for key, value in attrs.items() if key in ("src", "href")
    ]
    assert all(
        re.fullmatch(r"/favicon\.svg|/assets/[\w-]+-[\w-]{8}\.(js|css)", one) for one in named
    )
    found = {
        address
        for name, content in files(PAGE).items()
        for address in re.findall(r"https?://[\w./:-]+", content.decode())
        if not NAMED.fullmatch(address)
    }
    assert found == set()
    sheets = [content.decode() for name, content in files(PAGE).items() if name.endswith(".css")]
    assert [one for sheet in sheets for one in re.findall(r"@import|url\([^)]*\)", sheet)] == []


def test_no_text_is_ever_run_as_code():
    scripts = [content.decode() for name, content in files(PAGE).items() if name.endswith(".js")]
    assert [found for one in scripts for found in re.findall(r"\beval\(|new Function\(", one)] == []


def test_packages_are_named_by_exact_versions_and_no_registry_is():
    wanted = json.loads((WEB / "package.json").read_text())
    versions = [*wanted["dependencies"].values(), *wanted["devDependencies"].values()]
    assert [one for one in versions if not re.fullmatch(r"\d+\.\d+\.\d+", one)] == []
    assert '"resolved"' not in (WEB / "package-lock.json").read_text()


def test_one_place_alone_writes_html():
    """Everything a model says goes through the one function that makes it harmless."""
    found = {
        str(path.relative_to(WEB / "src"))
        for path in (WEB / "src").rglob("*.ts*")
        if re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", path.read_text())
    }
    assert found <= {"text/sanitise.ts"}


def test_every_source_of_the_page_says_what_it_is():
    scripts = [*(WEB / "src").rglob("*.ts"), *(WEB / "src").rglob("*.tsx")]
    assert len(scripts) > 20
    begins = [path.name for path in scripts if not path.read_text().startswith(("// ", "/**"))]
    assert begins == []
