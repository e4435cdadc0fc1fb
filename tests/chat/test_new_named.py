"""An application by its name: found in the folder of a project, or a sentence that says why not."""

import sys

import pytest

from bridle.chat import ChatApp, load_app
from bridle.errors import ConfigError

MODULES = {
    "fine": "from bridle.chat import ChatApp\nchat = ChatApp(database='own.db')\n"
    "def app(database='own.db', provider=None):\n    return ChatApp(database=database)\n"
    "def bare():\n    return ChatApp(database='own.db')\n"
    "def wrong():\n    return 7\n"
    "def broken():\n    return 1 / 0\n"
    "number = 7\n",
    "torn": "def app(:\n",
    "needs": "import gone_too\n",
    "fails": "\n\nraise RuntimeError('bad')\n",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name, text in MODULES.items():
        (tmp_path / f"named_{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(f"named_{name}", None)


@pytest.mark.parametrize("name", ["named_fine", "named_fine:app", "named_fine:chat"])
def test_an_application_is_found_by_its_name(project, name):
    found = load_app(name)
    assert isinstance(found, ChatApp)
    assert found.database.url.database == "own.db"


def test_one_that_is_made_gets_the_database_that_is_named(project):
    assert load_app("named_fine:app", "other.db").database.url.database == "other.db"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "'' is not the name of a chat"),
        ("a b:app", "'a b:app' is not the name of a chat"),
        ("../named_fine", "'../named_fine' is not the name of a chat"),
        ("named_gone:app", "there is no module named_gone"),
        ("named_needs:app", "named_needs imports a module that does not exist: gone_too"),
        ("named_fails:app", "named_fails cannot be loaded: RuntimeError: bad (named_fails.py:3)"),
        ("named_fine:gone", "named_fine:gone is not a chat"),
        ("named_fine:number", "named_fine:number is not a chat"),
        ("named_fine:wrong", "named_fine:wrong is not a chat"),
    ],
)
def test_what_is_no_application_is_said_in_a_sentence(project, name, why):
    with pytest.raises(ConfigError) as caught:
        load_app(name)
    assert caught.value.message == why


def test_what_breaks_while_it_is_made_is_said_with_its_place(project):
    with pytest.raises(ConfigError) as caught:
        load_app("named_fine:broken")
    assert caught.value.message.endswith("ZeroDivisionError: division by zero (named_fine.py:10)")


def test_a_module_that_cannot_be_read_says_where(project):
    with pytest.raises(ConfigError) as caught:
        load_app("named_torn:app")
    assert "named_torn cannot be loaded: SyntaxError" in caught.value.message


def test_a_function_without_a_database_cannot_be_given_one(project):
    with pytest.raises(ConfigError) as caught:
        load_app("named_fine:bare", "other.db")
    assert caught.value.message == "named_fine:bare has no parameter `database`"
