"""Git's configuration: read as git itself reads it, and judged by a list of what is harmless."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridle.workspace.git.config import Setting, is_harmless, parse_config
from bridle.workspace.git.repository import gitlinks


def test_sections_keys_and_values_are_read() -> None:
    text = (
        "\ufeff# a comment\n[Core]\r\n\tBare = false ; no\n\tfileMode\n"
        '[remote "Origin \\"x\\""]\n url = "a;b" c  d # e\n[branch.Main] merge = a\\\nb\n'
    )
    assert list(parse_config(text)) == [
        Setting("core", None, "bare", "false"),
        Setting("core", None, "filemode", None),
        Setting("remote", 'Origin "x"', "url", "a;b c  d"),
        Setting("branch", "main", "merge", "ab"),
    ]


def test_a_quoted_space_makes_a_program_of_a_switch() -> None:
    (setting,) = parse_config('[core]\nfsmonitor = " true"\n')
    assert setting.value == " true"
    assert not is_harmless(setting)


def test_a_value_of_many_pieces_takes_no_longer_than_its_length() -> None:
    text = '[a]\n b = "' + '\\n""' * 100_000 + '"'
    assert list(parse_config(text)) == [Setting("a", None, "b", "\n" * 100_000)]


@pytest.mark.parametrize(
    "text",
    [
        "key = 1\n",
        "[core\nx = 1\n",
        "[core]\n= 1\n",
        "[core]\nx y\n",
        "[core]\nx # why\n",
        '[core]\nx = "open\n',
        "[core]\nx = a\\q\n",
        "[core]\n1x = a\n",
        '[core "a\n"]\n',
        "[core]\nx = a\0b\n",
        "[ core]\nx = 1\n",
        "[]\nx = 1\n",
    ],
)
def test_what_git_refuses_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"."):
        list(parse_config(text))


SPACES = st.sampled_from(["", " ", "\t", "  "])
NAMES = st.sampled_from(["core", "Diff", "a-b", "x.y"])
VALUES = st.text(' \t"\\nbt;#abc=[]', max_size=12)
LINES = st.one_of(
    st.builds(lambda a, n, b: f"{a}[{n}]{b}", SPACES, NAMES, SPACES),
    st.builds(lambda n, s: f'[{n} "{s}"]', NAMES, st.text('ab\\" .', max_size=4)),
    st.builds(lambda a, v: f"{a}key{a}={v}", SPACES, VALUES),
    st.sampled_from(["key", "# c", "; c", "", "\tKey2 ", "\\"]),
)


@given(st.lists(LINES, min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_is_read_is_what_git_reads(tmp_path: Path, lines: list[str], end: str) -> None:
    """Git itself is the referee; what it refuses need not be refused in the same place."""
    file = tmp_path / "config"
    file.write_bytes(end.join(["[first]", *lines]).encode() + end.encode())
    done = subprocess.run(
        ["git", "config", "--file", str(file), "--list", "--null"], capture_output=True, check=False
    )
    try:
        found = list(parse_config(file.read_bytes().decode()))
    except ValueError:
        return  # fails closed
    assert done.returncode == 0
    said = done.stdout.decode().replace("\t", " ")  # older versions make a space of a tab
    assert [_listed(one).replace("\t", " ") for one in found] == said.split("\0")[:-1]


def _listed(setting: Setting) -> str:
    name = ".".join(
        filter(lambda part: part is not None, [setting.section, setting.subsection, setting.key])
    )
    return name if setting.value is None else f"{name}\n{setting.value}"


HARMLESS = """
[core]
    repositoryformatversion = 0
    filemode = true
    bare = false
    fsmonitor = true
    autocrlf = input
[remote "origin"]
    url = https://example.org/x.git
    fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
    remote = origin
    merge = refs/heads/main
[user]
    name = Ann
[pager]
    log = false
[filter "lfs"]
    clean = git-lfs clean -- %f
    smudge = git-lfs smudge -- %f
    process = git-lfs filter-process
    required = true
[diff "python"]
    xfuncname = ^def
[submodule "lib"]
    url = ../lib
    update = rebase
[extensions]
    worktreeConfig = true
"""

RUNS = """
core.fsmonitor=./x  core.pager=x  core.editor=x  core.sshcommand=x  core.gitproxy=x  core.askpass=x
core.alternaterefscommand=x  core.attributesfile=x  core.excludesfile=x  diff.external=x
diff.x.command=y  diff.x.textconv=y  merge.x.driver=y  filter.x.clean=y  filter.x.smudge=y
filter.x.process=y  filter.lfs.clean=evil  alias.st=!x  alias.status=log  include.path=x
includeif.gitdir:/.path=x  pager.log=x  gpg.program=x  gpg.ssh.program=x
gpg.ssh.defaultkeycommand=x
credential.helper=x
credential.https://a.helper=!x  uploadpack.packobjectshook=x
remote.o.uploadpack=x  remote.o.receivepack=x  remote.o.vcs=x  remote.o.promisor=true
remote.o.partialclonefilter=blob:none  extensions.partialclone=o  submodule.x.update=!y
interactive.difffilter=x  sequence.editor=x  safe.barerepository=all  protocol.allow=always
protocol.ext.allow=always  trailer.x.command=y  mergetool.x.cmd=y  difftool.x.cmd=y  browser.x.cmd=y
man.x.cmd=y  web.browser=x  sendemail.smtpserver=/x  ssh.variant=x  init.templatedir=x
log.showsignature=true  mailmap.file=x  mailmap.blob=x  diff.submodule=diff  unknown.key=1
core.x.bare=true  gc.recentobjectshook=x  receive.procreceiverefs=x  tar.x.command=y
lfs.customtransfer.x.path=y  guitool.x.cmd=y  instaweb.httpd=x  transfer.credentialsinurl=allow
blame.ignorerevsfile=x  commit.template=x  diff.orderfile=x  format.signaturefile=x
format.outputdirectory=x  http.cookiefile=x  http.savecookies=1  http.https://a.sslcert=x
http.sslcapath=x  branch.main.mergeoptions=x  gpg.ssh.allowedsignersfile=x  fsmonitor.socketdir=x
"""


def test_an_ordinary_configuration_is_harmless() -> None:
    assert [one for one in parse_config(HARMLESS) if not is_harmless(one)] == []


@pytest.mark.parametrize("spelled", RUNS.split())
def test_a_setting_that_can_run_code_is_not_harmless(spelled: str) -> None:
    name, _, value = spelled.partition("=")
    section, _, rest = name.partition(".")
    subsection, _, key = rest.rpartition(".")
    assert not is_harmless(Setting(section, subsection or None, key, value))


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_links_to_other_repositories_are_found_in_a_real_index(
    tmp_path: Path, version: int, kind: str
) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", f"--object-format={kind}")
    for number in range(30):
        (tmp_path / f"file{number}").write_text(str(number))
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "x").write_text("x")
    git("add", ".")
    index = tmp_path / ".git" / "index"
    assert gitlinks(index.read_bytes()) == []
    oid = "1" * (40 if kind == "sha1" else 64)
    git("update-index", "--add", "--cacheinfo", f"160000,{oid},deep/lib")
    git("update-index", "--add", "--cacheinfo", f"160000,{oid},vendor/b")
    git("update-index", f"--index-version={version}")
    assert gitlinks(index.read_bytes()) == ["deep/lib", "vendor/b"]
    with pytest.raises(ValueError, match="not an index"):
        gitlinks(index.read_bytes() + b"more")
    with pytest.raises(ValueError, match="not an index"):
        gitlinks(b"DIRC" + index.read_bytes()[5:])
