"""Undo after real turns: a scripted model, the built-in tools, a session of the engine."""

import os
import subprocess

import pytest
from undo_rig import picture

from bridle import build_engine
from bridle.events import FilesChanged, ToolResultEvent
from bridle.providers.scripted import Scripted
from bridle.workspace.undo.undo import Undo
from rig import call, calls, run

PATCH = """\
--- a/src/b.py
+++ b/src/b.py
@@ -1,2 +1,2 @@
-b = 1
+b = 2
 # end
--- /dev/null
+++ b/src/made.py
@@ -0,0 +1 @@
+made = True
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-old
"""

TURNS = [
    [
        calls(("read", {"path": "a.txt"}), ("read", {"path": "src/b.py"})),
        call("read", path="old.txt"),
        call("edit", path="a.txt", old="one", new="two"),
        call("write", path="deep/new/n.txt", content="n\n"),
        call("apply_patch", patch=PATCH),
        "done",
    ],
    [
        call("shell", command="rm -r gone && mv run.sh ran.sh && chmod 600 src/b.py"),
        call("shell", command="ln -s a.txt link && mkdir empty && rmdir hollow"),
        call("shell", command="echo more >> a.txt"),
        "done",
    ],
]


@pytest.fixture(params=["without git", "with git"])
def root(request, tmp_path):
    root = tmp_path / "workspace"
    for name in ("src", "gone/inner", "hollow"):
        (root / name).mkdir(parents=True)
    (root / "a.txt").write_text("one\r\n", newline="")
    (root / "src/b.py").write_text("b = 1\n# end\n")
    (root / "old.txt").write_text("old\n")
    (root / "gone/inner/x.bin").write_bytes(bytes(range(256)))
    (root / "run.sh").write_text("echo hi\n")
    (root / "run.sh").chmod(0o755)
    if request.param == "with git":
        command = ["git", "init", "-q", str(root)]
        subprocess.run(command, check=True, timeout=240, env={"PATH": os.environ["PATH"]})
    return root


async def work(root, state):
    """Two turns: the session's id, what was said to have changed, and pictures between them."""
    replies = [reply for turn in TURNS for reply in turn]
    pictures = [picture(root)]
    async with build_engine(Scripted(replies), workspace=root, state=state, mode="auto") as engine:
        session = await engine.session()
        for _ in TURNS:
            result = await session.wait(await session.send("go"))
            assert result.reason == "done"
            pictures.append(picture(root))
        records = [record.event for record in engine.store.read(session.id)]
    outputs = [one.output for one in records if isinstance(one, ToolResultEvent)]
    assert [(one.name, one.text) for one in outputs if one.is_error] == []
    return session.id, [one for one in records if isinstance(one, FilesChanged)], pictures


def test_turns_of_every_tool_are_taken_back_byte_for_byte(root, tmp_path):
    state = tmp_path / "state"
    session, changes, pictures = run(work(root, state))
    assert [{(one.path, one.how) for one in change.files} for change in changes] == [
        {("a.txt", "changed")},
        {("deep/new/n.txt", "added")},
        {("src/b.py", "changed"), ("src/made.py", "added"), ("old.txt", "deleted")},
        {
            ("gone/inner/x.bin", "deleted"),
            ("run.sh", "deleted"),
            ("ran.sh", "added"),
            ("src/b.py", "changed"),
        },
        {("link", "added"), ("empty/", "added"), ("hollow/", "deleted")},
        {("a.txt", "changed")},
    ]
    assert [change.turn for change in changes] == [1, 1, 1, 2, 2, 2]
    undo = Undo(root, state)
    for before in reversed(pictures[:-1]):
        assert undo.undo(session).done
        assert picture(root) == before
    for after in pictures[1:]:
        assert undo.redo(session).done
        assert picture(root) == after
