"""Who carried a session last, read from the end of its log."""

import json
import os

import pytest

from bridle.cli.carrier import last_carrier


def a_start(model):
    data = {"type": "session_start", "sessionId": "s", "workspace": "/w" * 900, "model": model}
    return json.dumps({"seq": 1, "data": data}, separators=(",", ":")) + "\n"


def a_text(size):
    quoted = '"data":{"type":"session_start","model":"a lie"}'
    data = {"type": "event", "eventType": "TextDelta", "text": quoted + "x" * size}
    return json.dumps({"seq": 2, "data": data}, separators=(",", ":")) + "\n"


@pytest.mark.parametrize("size", [0, 10, 1000, (1 << 18) - 1000, 1 << 18, (1 << 20) + 7])
def test_the_newest_start_counts_wherever_it_lies(tmp_path, size):
    log = tmp_path / "log.jsonl"
    log.write_text(a_start("first") + a_text(size) + a_start("claude-code") + a_text(size))
    assert last_carrier(log) == "claude-code"
    log.write_text(a_start("first") + a_text(size) * 3)
    assert last_carrier(log) == "first"


def test_a_line_that_lies_across_two_pieces_is_read_whole(tmp_path):
    log = tmp_path / "log.jsonl"
    for size in range((1 << 18) - 2100, (1 << 18) + 20, 130):
        log.write_text(a_start("first") + a_start("claude-code") + a_text(size))
        assert last_carrier(log) == "claude-code", size


def test_a_log_that_says_nothing_names_nobody(tmp_path):
    log = tmp_path / "log.jsonl"
    assert last_carrier(log) == ""
    for text in ("", "\n", '{"data":{"type":"session_start","x', a_text(10)):
        log.write_text(text)
        assert last_carrier(log) == "", text
    log.unlink()
    os.mkfifo(log)
    assert last_carrier(log) == ""  # and nobody waits for a writer
    assert last_carrier(tmp_path) == ""
