"""Searches through a whole folder: the credentials below it are read, however it is spelled."""

import pytest
from deciding import understood, verdict
from imagined import Imagined

DEEP = Imagined(files=("src/app.py", "a/b/c/.env", "README.md"), links={"a/out": "/etc/passwd"})
GUARD = "reads a/b/c/.env: it holds credentials"


@pytest.mark.parametrize(
    "line",
    [
        "grep -r x .",
        "grep -d recurse x .",
        "grep -drec x",
        "grep --directories=recurse x .",
        "grep -r --exclude=zzz --include='*.py' x .",
        "grep -r --include='[^x]*' x .",
        "grep -r --include='.e*' x a",
        "rg --hidden x",
        "rg --hidden -g '**/.env' x",
        "rg -g .env x",
        "rg --iglob .ENV x",
        "rg -g '{a,b}/**' x",
        "rg -g 'a/**' x",
        "diff a src",
        "find . -type f -exec cat {} +",
        "find . -name '.e*' -exec cat {} +",
    ],
)
def test_credentials_deep_in_a_searched_folder_are_for_a_person_to_allow(line):
    assert understood(line, machine=DEEP).guard == GUARD


@pytest.mark.parametrize(
    "line",
    [
        "grep -rn x src",
        "grep -r --include='*.py' x .",
        "grep -d skip x README.md",
        "rg x",
        "rg -g '*.py' x",
        "rg -g '!*.md' x",
        "find src -name '*.py' -exec cat {} +",
        r"find . -name '*.py' -exec grep -l x {} \;",
    ],
)
def test_a_search_that_leaves_them_out_runs_unasked(line):
    assert verdict(line, machine=DEEP) == "allow"


def test_a_link_that_leads_out_is_not_handed_to_a_program_unasked():
    linked = Imagined(files=("src/app.py",), links={"src/out": "/etc/passwd"})
    assert verdict("find src -exec cat {} +", machine=linked) == "ask"
    assert verdict("find src -name 'o*' -exec cat {} +", machine=linked) == "ask"
    assert verdict("find src -name '*.py' -exec cat {} +", machine=linked) == "allow"
    assert verdict("grep -r x src", machine=linked) == "allow"  # it follows none


def test_a_folder_with_too_many_files_asks():
    vast = Imagined(vast=True)
    assert verdict("grep -r x .", machine=vast) == "ask"
    assert verdict("find . -name '*.py' -exec cat {} +", machine=vast) == "ask"
    assert verdict("rg x", machine=vast) == "allow"
