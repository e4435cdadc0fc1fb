"""A call that must fail is not put to a person first: it fails, and nobody is asked."""

import pytest

from bridle.events import ApprovalAsked
from bridle.protocols.session import YES
from bridle.providers.scripted import Scripted
from bridle.runtime.assembly import build_engine
from bridle.tools.web_fetch import WebFetch
from rig import call, calls, events, results, run

PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"
READ = call("read", path="a.txt")


def told(tmp_path, *script, **options):
    """What came of each call, and which were asked about."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("one\n")
    (tmp_path / "work/.env").write_text("KEY=1\n")

    async def approver(asked):
        return YES

    async def work():
        options.setdefault("approver", approver)
        kept = {"workspace": tmp_path / "work", "state": tmp_path / "state"}
        async with build_engine(Scripted([*script, "done"]), **kept, **options) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            asked = events(engine, session.id, ApprovalAsked)
            texts = [text for _, text, _ in results(engine, session.id)]
            return texts, [one.call.name for one in asked]

    return run(work())


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (call("edit", path="a.txt", old="one", new="two"), "has not been read in this session"),
        (call("edit", path="none.txt", old="one", new="two"), "none.txt"),
        (call("write", path="a.txt", content="two"), "has not been read in this session"),
        (call("write", path=".", content="two"), "is a folder"),
        (call("apply_patch", patch=PATCH), "has not been read in this session"),
    ],
)
def test_a_change_of_a_file_that_was_not_read_fails_unasked(tmp_path, wanted, why):
    texts, asked = told(tmp_path, wanted)
    assert asked == []
    assert why in texts[0] and "not run" not in texts[0]


def test_a_change_that_does_not_fit_the_file_fails_unasked(tmp_path):
    texts, asked = told(tmp_path, READ, call("edit", path="a.txt", old="three", new="two"))
    assert asked == []
    assert "`old` is not in `a.txt`" in texts[1]


def test_a_change_that_fits_is_asked_about_and_made(tmp_path):
    texts, asked = told(tmp_path, READ, call("edit", path="a.txt", old="one", new="two"))
    assert asked == ["edit"]
    assert (tmp_path / "work/a.txt").read_text() == "two\n"
    assert texts[1].startswith("Changed")


def test_of_several_changes_only_those_that_fit_are_asked_about(tmp_path):
    wanted = [
        ("edit", {"path": "a.txt", "old": "one", "new": "two"}),
        ("edit", {"path": "a.txt", "old": "three", "new": "four"}),
        ("write", {"path": "b.txt", "content": "b"}),
    ]
    texts, asked = told(tmp_path, READ, calls(*wanted))
    assert asked == ["edit", "write"]
    assert "`old` is not in `a.txt`" in texts[2]


def test_what_is_in_a_file_that_takes_care_is_not_told_before_the_yes(tmp_path):
    _, asked = told(tmp_path, call("edit", path=".env", old="KEY=2", new="KEY=3"))
    assert asked == ["edit"]


def test_a_host_that_is_not_on_the_list_is_refused_before_a_person_is_asked(tmp_path):
    tool = WebFetch(["example.org"])
    wanted = call("web_fetch", url="https://elsewhere.example/")
    texts, asked = told(tmp_path, wanted, tools=[tool])
    assert asked == []
    assert "elsewhere.example is not among the hosts that may be fetched from" in texts[0]
