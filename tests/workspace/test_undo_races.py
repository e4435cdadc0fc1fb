"""Undo beside somebody who swaps folders for links that lead out: nothing out there is touched."""

import os
import subprocess
import sys

from undo_rig import Place, picture

from bridle.errors import AgentError
from rig import seeds

SWAPPING = """
import os, sys
root, outside = sys.argv[1:]
print(flush=True)
while True:
    try:
        os.rename(f"{root}/sub", f"{root}/.moved")
        os.symlink(outside, f"{root}/sub")
        os.unlink(f"{root}/sub")
        os.rename(f"{root}/.moved", f"{root}/sub")
    except OSError:
        try:
            os.rename(f"{root}/.moved", f"{root}/sub")
        except OSError:
            os.path.islink(f"{root}/sub") and os.unlink(f"{root}/sub")
"""


def test_a_process_that_swaps_a_folder_for_a_link_leads_nothing_out(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("x.txt", "y.txt"):
        (outside / name).write_text("theirs")
    theirs = picture(outside)
    place = Place(tmp_path)
    place.put(".gitignore", ".moved\n")
    place.put("sub/x.txt", "x" * 5000)
    swapping = [sys.executable, "-c", SWAPPING, str(place.root), str(outside)]
    done = 0
    with subprocess.Popen(swapping, stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            for turn in range(400):
                if done and turn >= len(seeds(400)):
                    break  # on a busy machine it takes a while until one of them gets through
                place.effects(lambda turn=turn: change(place.root, turn))
                for verb in (place.undo.undo, place.undo.redo):
                    try:
                        done += verb("s", force=True).done
                    except AgentError:
                        continue  # the link stood in its way, or there was nothing to take back
        finally:
            process.kill()
    assert picture(outside) == theirs
    assert not any(b"theirs" in path.read_bytes() for path in place.state.rglob("objects/*/*"))
    assert done > 0


def change(root, turn):
    """What a careful tool would do: through a handle of the real folder, whatever its name is."""
    for name in ("sub", ".moved"):
        try:
            handle = os.open(root / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with os.fdopen(os.open("y.txt", flags, 0o644, dir_fd=handle), "w") as file:
                file.write(f"{turn}" * 500)
        finally:
            os.close(handle)
        return
