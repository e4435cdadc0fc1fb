"""Earlier prompts, drafts and the editor: private files with bounds, and nothing lost."""

import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bridle.errors import AgentError, ConfigError
from bridle.tui.editor import edit_text, find_editor
from bridle.tui.widgets.history import MOST, Drafts, PromptHistory


def test_the_files_are_private(tmp_path):
    folder = tmp_path / "state"
    PromptHistory(folder).add("a secret plan")
    Drafts(folder).keep("s", "half a plan")
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_prompt_of_five_thousand_lines_is_remembered(tmp_path):
    text = (
        "a line of a log that was pasted, of eighty characters or so, as logs have them\n" * 5_000
    )
    PromptHistory(tmp_path).add(text)
    again = PromptHistory(tmp_path)
    again.load()
    assert again.newest_first == (text,)


def test_the_history_is_bounded_in_number_and_size(tmp_path):
    prompts = PromptHistory(tmp_path)
    for n in range(60):
        prompts.add(f"{n}" + "x" * 90_000)
    size = (tmp_path / "prompts.jsonl").stat().st_size
    assert size < 4_100_000
    again = PromptHistory(tmp_path)
    again.load()
    assert again.newest_first[0].startswith("59x")
    few = PromptHistory()
    for n in range(MOST + 10):
        few.add(str(n))
    assert len(few.newest_first) == MOST


def test_a_prompt_that_is_sent_before_the_history_was_read_is_there_once(tmp_path):
    """It was typed while the screen opened, and is in the file when somebody reads that."""
    PromptHistory(tmp_path).add("yesterday")
    prompts = PromptHistory(tmp_path)
    prompts.add("now")
    prompts.load()
    assert prompts.older("") == "now"
    assert prompts.older("now") == "yesterday"
    assert prompts.older("yesterday") is None


def test_a_damaged_history_is_read_as_far_as_it_goes(tmp_path):
    (tmp_path / "prompts.jsonl").write_bytes(b'"one"\n\xff\xfe{\n[1]\n"two"\n"thr')
    prompts = PromptHistory(tmp_path)
    prompts.load()
    assert prompts.newest_first == ("two", "one")
    (tmp_path / "drafts.json").write_bytes(b"{nothing")
    assert Drafts(tmp_path).of("s") == ""


def test_a_state_folder_that_cannot_be_written_costs_the_history_alone(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    prompts = PromptHistory(blocked)
    prompts.add("one")
    assert prompts.older("") == "one"
    drafts = Drafts(blocked)
    drafts.keep("s", "half")
    assert drafts.of("s") == "half"


def test_several_write_at_once_and_no_line_is_torn(tmp_path):
    def write(who):
        prompts = PromptHistory(tmp_path)
        for n in range(20):
            prompts.add(f"{who}-{n}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    prompts = PromptHistory(tmp_path)
    prompts.load()
    assert len(prompts.newest_first) == 80


def test_a_draft_that_was_sent_is_forgotten_and_old_ones_go(tmp_path):
    drafts = Drafts(tmp_path)
    for n in range(60):
        drafts.keep(f"s{n}", "words")
    drafts.keep("s59", "")
    again = Drafts(tmp_path)
    assert (again.of("s59"), again.of("s58"), again.of("s0")) == ("", "words", "")


def editor(tmp_path, code):
    path = tmp_path / "ed.py"
    path.write_text(f"import sys, pathlib, os\npath = pathlib.Path(sys.argv[1])\n{code}\n")
    return {"EDITOR": f"{sys.executable} {path}", "PATH": os.environ["PATH"]}


def test_the_editor_changes_the_text_in_a_private_file_that_goes(tmp_path):
    told = tmp_path / "told"
    code = (
        f"pathlib.Path({str(told)!r}).write_text(f'{{path}} {{oct(path.parent.stat().st_mode)}}')\n"
        "path.write_text(path.read_text().upper() + chr(10))"
    )
    assert edit_text("words", editor(tmp_path, code)) == "WORDS"
    where, mode = told.read_text().split()
    assert mode == "0o40700"
    assert not Path(where).exists()


def test_visual_comes_before_editor_and_both_before_what_is_installed(tmp_path):
    for name in ("code", "nano", "vi"):
        (tmp_path / name).touch(0o755)
    there = {"PATH": str(tmp_path)}
    assert find_editor({**there, "VISUAL": "code -w", "EDITOR": "nano"}) == ["code", "-w"]
    assert find_editor({**there, "VISUAL": " ", "EDITOR": "vi"}) == ["vi"]
    assert find_editor(there) == ["nano"]
    with pytest.raises(ConfigError, match="no editor was found"):
        find_editor({"PATH": str(tmp_path / "nowhere")})
    with pytest.raises(ConfigError, match="VISUAL"):
        find_editor({**there, "VISUAL": "'open"})


@pytest.mark.parametrize(
    "code", ["sys.exit(3)", "path.unlink()", "path.write_bytes(b'x' * 5_000_000)"]
)
def test_an_editor_that_fails_changes_nothing_and_says_so(tmp_path, code):
    with pytest.raises(AgentError) as caught:
        edit_text("words", editor(tmp_path, code))
    assert "prompt is unchanged" in caught.value.hint


def test_an_editor_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="no-such-editor"):
        edit_text("words", {"EDITOR": "no-such-editor"})


def test_bytes_that_are_no_text_come_back_as_text(tmp_path):
    assert edit_text("", editor(tmp_path, "path.write_bytes(b'a\\xff\\n')")) == "a\ufffd"
