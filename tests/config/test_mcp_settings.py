"""MCP servers in the settings: read with their lines, written without touching anything else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.config.folder import load_servers
from bridle.config.loader import load_settings
from bridle.config.mcp import (
    NAME,
    ServerSettings,
    add_server,
    own_servers,
    parse_own_servers,
    remove_server,
)
from bridle.config.trust import Trust
from bridle.errors import ConfigError
from bridle.runtime.mcp import make_spec
from bridle.runtime.providers import known_secrets

FILE = """\
# my settings
model: offline  # for now

mcp:
  servers:
    # the one for issues
    github:
      command: ["npx", "-y", "server"]
      env: {TOKEN: "${GITHUB_TOKEN}"}
    docs:
      url: https://example.com/mcp
      headers: {Authorization: "Bearer ${DOCS}"}
      timeout: 5
      enabled: false
hosts: [docs.python.org]  # last
"""


def in_file(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return path


def test_servers_are_read_from_the_settings_and_cost_no_other_setting(tmp_path):
    path = in_file(tmp_path, FILE)
    github, docs = own_servers(path)
    assert (github.name, github.command, github.env) == (
        "github",
        ("npx", "-y", "server"),
        {"TOKEN": "${GITHUB_TOKEN}"},
    )
    assert (docs.url, docs.headers, docs.timeout, docs.enabled) == (
        "https://example.com/mcp",
        {"Authorization": "Bearer ${DOCS}"},
        5.0,
        False,
    )
    assert github.origin == f"{path}:8"
    assert load_settings({}, {}, path).settings.hosts == ("docs.python.org",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mcp: 5", "has to hold `key: value` lines"),
        ("mcp:\n  server: {}", ":2: there is no `server` here"),
        ("mcp:\n  servers:\n    a__b: {url: 'http://x'}", "cannot be called `a__b`"),
        ("mcp:\n  servers:\n    a: {}", "needs a `command` or a `url`"),
        ("mcp:\n  servers:\n    a: {command: npx}", "`command` has to be a list of words"),
        ("mcp:\n  servers:\n    a: {url: ftp://x}", "has to begin with http"),
        ("mcp:\n  servers:\n    a: {url: 'http://x', env: {A: b}}", "a `url` has no `env`"),
        ("mcp:\n  servers:\n    a: {command: [x], timeout: 0}", "a number above 0"),
        ("mcp:\n  servers:\n    a: {command: [x], nonsense: 1}", "there is no `nonsense`"),
        ("mcp:\n  servers:\n    a: {command: [x], env: {A: 'x\\ny'}}", None),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_line(tmp_path, text, said):
    path = in_file(tmp_path, text)
    if said is None:
        assert own_servers(path)[0].env == {"A": "x\\ny"}
        return
    with pytest.raises(ConfigError) as caught:
        own_servers(path)
    assert said in caught.value.message and caught.value.hint
    assert str(path) in caught.value.message


def test_a_folder_has_servers_where_it_is_trusted_and_never_in_place_of_ours(tmp_path):
    environ = {"HOME": str(tmp_path), "BRIDLE_STATE": str(tmp_path / "state")}
    mine = tmp_path / ".config" / "bridle"
    mine.mkdir(parents=True)
    (mine / "config.yaml").write_text("mcp: {servers: {one: {command: [mine]}}}")
    root = tmp_path / "project"
    (root / ".bridle").mkdir(parents=True)
    written = "servers: {one: {command: [theirs]}, two: {command: [./.bridle/two.sh]}}"
    (root / ".bridle" / "mcp.yaml").write_text(written)
    (root / ".bridle" / "two.sh").write_text("#!/bin/sh\n")

    def names():
        found = load_servers(root, environ)
        return [(one.name, one.command[0], one.here) for one in found.items], found.notes

    alone, notes = names()
    assert alone == [("one", "mine", False)]
    assert notes[0][0] == "this folder has its own MCP servers, which are not used"
    Trust(environ["BRIDLE_STATE"]).grant(root)
    both, notes = names()
    assert both == [("one", "mine", False), ("two", "./.bridle/two.sh", True)]
    assert notes[0][0].startswith("the folder's MCP server one is not used")
    (root / ".bridle" / "two.sh").write_text("#!/bin/sh\nrm -rf .\n")  # what it starts counts
    assert names()[0] == alone


def test_variables_are_looked_up_and_kept_out_of_every_log(tmp_path):
    environ = {"GITHUB_TOKEN": "ghp_0123456789abcdef", "DOCS": "docs-token-value"}
    github, docs = (
        make_spec(one, tmp_path, environ) for one in own_servers(in_file(tmp_path, FILE))
    )
    assert github.env == {"TOKEN": "ghp_0123456789abcdef"}
    assert docs.headers == {"Authorization": "Bearer docs-token-value"}
    assert {"ghp_0123456789abcdef", "docs-token-value"} <= set(known_secrets({}))
    assert "ghp_" not in repr(github) and "docs-token" not in repr(docs)
    unset = make_spec(own_servers(tmp_path / "config.yaml")[0], tmp_path, {})
    assert unset.problem == "the variable GITHUB_TOKEN is not set"


def test_a_server_is_added_and_removed_and_every_other_line_stays(tmp_path):
    path = in_file(tmp_path, FILE)
    new = ServerSettings("new", ("run", "it: now"), {"A": "b # c"}, timeout=7.0)
    add_server(path, new)
    assert [one.name for one in own_servers(path)] == ["new", "github", "docs"]
    for line in FILE.splitlines():
        assert line in path.read_text().splitlines()
    add_server(path, ServerSettings("new", ("another",)))
    assert own_servers(path)[0].command == ("another",)
    assert remove_server(path, "new")
    assert path.read_text() == FILE
    assert remove_server(path, "github")
    assert [one.name for one in own_servers(path)] == ["docs"]
    assert "# last" in path.read_text()
    assert not remove_server(path, "github")


@pytest.mark.parametrize(
    "text",
    ["", "# nothing yet\n", "model: offline", "mcp:\n", "mcp:\n  servers:\n"],
)
def test_a_server_finds_its_place_in_any_file(tmp_path, text):
    path = in_file(tmp_path, text)
    add_server(path, ServerSettings("new", url="https://example.com/mcp"))
    assert [one.url for one in own_servers(path)] == ["https://example.com/mcp"]
    assert path.stat().st_mode & 0o077 == 0


def test_where_there_is_no_place_nothing_is_changed(tmp_path):
    text = "mcp: {servers: {old: {command: [x]}}}\n"
    path = in_file(tmp_path, text)
    with pytest.raises(ConfigError, match="no place"):
        add_server(path, ServerSettings("new", ("y",)))
    assert path.read_text() == text


_CHARACTERS = st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"))
_TEXT = st.text(_CHARACTERS, max_size=20).filter(str.isprintable)
_WORDS = st.lists(_TEXT, min_size=1, max_size=4).filter(lambda words: words[0].strip())


@given(
    st.from_regex(NAME, fullmatch=True),
    _WORDS,
    st.dictionaries(st.from_regex("[A-Z]{1,5}", fullmatch=True), _TEXT, max_size=3),
)
def test_whatever_is_written_is_read_back(name, words, env):
    from bridle.config.mcp import _add_to_text

    one = ServerSettings(name, tuple(words), env)
    path = Path("config.yaml")
    found = {each.name: each for each in parse_own_servers(_add_to_text(FILE, one, path), path)}
    if name not in ("github", "docs"):
        assert (found[name].command, found[name].env) == (tuple(words), env)
        assert set(found) == {name, "github", "docs"}
