"""Verify: every alteration of a log is found, and an untouched one has none."""

import random
import tracemalloc

import pytest

from bridle.errors import StoreFailed, UnknownSession
from bridle.events import (
    BrokenLine,
    Checkpoint,
    MessageAdded,
    PromptReceived,
    Repaired,
    SessionStarted,
    TextDelta,
    ToolResultEvent,
    TurnEnded,
    UnknownEvent,
)
from bridle.messages import ToolOutput, user
from bridle.protocols.codec import encode_data, encode_line
from bridle.stores.jsonl import JsonlStore
from bridle.stores.verify import Finding, Head, verify
from rig import run, seeds

pytestmark = pytest.mark.slow

WHEN = "2026-01-31T10:30:01.000Z"


def chain(*events, seq=0, before=""):
    """These events as the lines of a log."""
    lines = []
    for event in events:
        seq += 1
        if isinstance(event, Checkpoint) and event.previous == "?":
            event = Checkpoint(before)
        line, before = encode_line(seq, WHEN, encode_data(event), before)
        lines.append(line)
    return lines


def story(turns=12):
    events = [SessionStarted("s", workspace="/w", model="m")]
    for turn in range(1, turns + 1):
        events += [
            PromptReceived(f"prompt {turn} “ä”", turn),
            MessageAdded(user(f"prompt {turn}"), len(events) + 1),
            TextDelta('some "text"\n'),
            ToolResultEvent(ToolOutput(f"c{turn}", "x" * (turn * 7))),
            UnknownEvent({"type": "later", "n": turn}),
            TurnEnded(turn, "done"),
            Checkpoint("?"),
        ]
    return chain(*events)


def write(tmp_path, lines):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def whats(report):
    return [found.what for found in report.findings]


def test_an_untouched_log_has_no_finding_and_its_head_is_told(tmp_path):
    lines = story()
    report = verify(write(tmp_path, lines))
    newest = Head(len(lines), lines[-1][-35:-3].decode())
    assert (report.records, report.size, report.head) == (len(lines), len(b"".join(lines)), newest)
    assert (report.findings, report.notes, report.ok) == ((), (), True)
    assert verify(write(tmp_path, lines), newest).ok
    more = chain(TurnEnded(99, "done"), seq=newest.seq, before=newest.hash)
    assert verify(write(tmp_path, lines + more), newest).ok  # it may have grown since


def altered(data, lines, choice):
    """One random alteration of a log; never the log itself."""
    kind = choice.randrange(8)
    at = choice.randrange(len(data))
    if kind == 0:
        return data[:at] + bytes([data[at] ^ (1 << choice.randrange(8))]) + data[at + 1 :]
    if kind == 1:
        return data[:at] + data[at + choice.randint(1, 300) :]
    if kind == 2:
        inserted = choice.choice([b" ", b"\n", b"\0", b"\t", b"{}", b"garbage\n", b"\r\n"])
        return data[:at] + inserted + data[at:]
    if kind == 3:
        one, other = sorted(choice.sample(range(len(lines)), 2))
        swapped = [*lines]
        swapped[one], swapped[other] = swapped[other], swapped[one]
        return b"".join(swapped)
    if kind == 4:
        one = choice.randrange(len(lines))
        return b"".join(lines[: one + 1] + lines[one:])
    if kind == 5:
        one = choice.randrange(len(lines))
        return b"".join(lines[:one] + lines[one + 1 :])
    if kind == 6:
        return data + choice.choice([b"\n", b" ", b"\0", lines[3], lines[-1], b'{"seq":1}\n'])
    return data[:at]


@pytest.mark.parametrize("seed", seeds(10))
def test_three_hundred_alterations_are_all_found(tmp_path, seed):
    lines, choice = story(), random.Random(seed)
    data = b"".join(lines)
    head = verify(write(tmp_path, lines)).head
    missed = []
    for number in range(300):
        changed = altered(data, lines, choice)
        if changed != data and verify(write(tmp_path, [changed]), head).ok:
            missed.append(number)
    assert missed == []


def test_every_single_byte_is_covered(tmp_path):
    data = b"".join(story(1))
    missed = [
        at
        for at in range(len(data))
        if verify(write(tmp_path, [data[:at], bytes([data[at] ^ 1]), data[at + 1 :]])).ok
    ]
    assert missed == []


def test_every_cut_but_a_clean_one_is_found_and_that_one_with_the_head(tmp_path):
    lines = story(2)
    data, head = b"".join(lines), verify(write(tmp_path, lines)).head
    clean = {0}
    for line in lines[:-1]:
        clean.add(max(clean) + len(line))
    unfound = {at for at in range(len(data)) if verify(write(tmp_path, [data[:at]])).ok}
    assert unfound == clean
    assert all(not verify(write(tmp_path, [data[:at]]), head).ok for at in range(len(data)))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda lines: [*lines[:4], lines[4].replace(b"xxx", b"xyx"), *lines[5:]], ["altered"]),
        (
            lambda lines: [*lines[:4], b"\0" * 50 + b"\n", *lines[5:]],
            ["unreadable", "missing number"],
        ),
        (lambda lines: [*lines[:4], *lines[5:]], ["missing number"]),
        (lambda lines: [*lines[:5], *lines[4:]], ["duplicate number"]),
        (lambda lines: [*lines, b'{"seq":'], ["torn tail"]),
        (lambda lines: [*lines[:4], lines[4][:-1], *lines[5:]], ["unreadable"]),
        (lambda lines: [lines[0].replace(b'"}\n', b'" }\n'), *lines[1:]], ["altered", "altered"]),
    ],
)
def test_what_happened_is_named(tmp_path, change, expected):
    lines = story(2)
    assert whats(verify(write(tmp_path, change(lines)))) == expected


def test_a_finding_says_after_which_record_and_where(tmp_path):
    lines = story(2)
    offset = len(b"".join(lines[:4]))
    lines[4] = lines[4].replace(b"xxx", b"xyx")
    report = verify(write(tmp_path, lines))
    detail = "the line does not agree with its hash"
    assert report.findings == (Finding(4, offset, "altered", detail),)
    assert report.records == len(lines) - 1


def test_a_log_written_anew_is_found_with_the_head(tmp_path):
    head = verify(write(tmp_path, story(2))).head
    anew = chain(*[TurnEnded(number, "done") for number in range(30)])
    assert verify(write(tmp_path, anew)).ok
    report = verify(write(tmp_path, anew), head)
    assert [(one.what, one.detail) for one in report.findings] == [
        ("head differs", f"record {head.seq} is not the one that was noted")
    ]
    shorter = verify(write(tmp_path, anew[:3]), head)
    assert shorter.findings[0].detail == f"the log ends with record 3, before record {head.seq}"


def test_a_checkpoint_of_another_log_is_found(tmp_path):
    lines = chain(SessionStarted("s"), TurnEnded(1, "done"), Checkpoint("f" * 32), TextDelta("x"))
    assert whats(verify(write(tmp_path, lines))) == ["checkpoint differs"]


@pytest.mark.parametrize("skipped", [0, 1, 5])
@pytest.mark.parametrize("newline", [True, False])
def test_what_a_repair_record_tells_of_is_known(tmp_path, newline, skipped):
    from hashlib import blake2b

    lines = story(2)
    before, after = lines[-2], lines[-1][:40] + b"~" + lines[-1][41:]
    mark = blake2b(after if newline else after[:-1], digest_size=16).hexdigest()
    told = Repaired(broken=(BrokenLine(len(lines) - 1, len(after), mark),))
    repair = chain(
        told, TextDelta("on"), seq=len(lines) - 1 + skipped, before=before[-35:-3].decode()
    )
    report = verify(write(tmp_path, [*lines[:-1], after, *repair]))
    assert [(one.what, one.known) for one in report.findings] == [("altered", True)]
    assert report.head.seq == len(lines) + 1 + skipped
    other = verify(write(tmp_path, [*lines[:-1], after[:60] + b"~" + after[61:], *repair]))
    assert [one.known for one in other.findings] == [False]


@pytest.mark.parametrize("seed", seeds(300))
def test_whoever_takes_a_damaged_log_up_is_told_all_that_verify_finds(state, seed):
    """Two programs with one opinion: what resuming mends and reports is what `verify` finds."""
    lines, choice = chain(*[TurnEnded(number, "done") for number in range(30)]), random.Random(seed)
    data = altered(b"".join(lines), lines, choice)
    path = state / "sessions" / "s" / "log.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    before = verify(path)
    if not before.records:
        return  # nothing is left that could be taken up

    async def take():
        store = JsonlStore(state, "process")
        log = await store.resume("s", lambda record: None)
        log.append(TextDelta("on"))
        await log.close()
        store.close()
        return Head(log.seq, log.head)

    head = run(take())
    after = verify(path, head)
    assert (after.head, after.more) == (head, 0)
    assert [one for one in after.findings if not one.known] == []
    told = {(one.what, one.offset) for one in after.findings}
    left = {(one.what, one.offset) for one in before.findings if one.offset < after.size}
    assert told <= left  # what was torn off the end is gone


def test_lines_of_another_program_are_a_note_and_no_finding(tmp_path):
    foreign = [
        b'{"timestamp":"2026-01-01T00:00:00Z","data":{"type":"user_prompt","content":"hi"}}\n',
        b'{"timestamp":"2026-01-01T00:00:01Z","data":{"type":"other"}}\n',
    ]
    ours = chain(SessionStarted("s", resumed=True), TextDelta("x"), seq=2)
    report = verify(write(tmp_path, foreign + ours))
    assert (report.findings, report.records) == ((), 4)
    assert report.notes == ("2 lines of another program are not protected by hashes",)
    assert whats(verify(write(tmp_path, [foreign[0], *ours]))) == ["missing number"]
    assert not verify(write(tmp_path, [foreign[0], *story(1)])).ok  # put before our own
    assert not verify(write(tmp_path, [*story(1), foreign[0]])).ok


def test_a_very_long_line_is_checked_in_little_memory(tmp_path):
    lines = chain(SessionStarted("s"), TextDelta("x" * 30_000_000), TextDelta("y"))
    path = write(tmp_path, lines)
    tracemalloc.start()
    seen = []
    report = verify(path, progress=lambda *told: seen.append(told))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (report.ok, report.records) == (True, 3)
    assert seen[-1] == (report.size, report.size)
    assert peak < 10_000_000
    at = 20_000_000
    data = path.read_bytes()
    path.write_bytes(data[:at] + b"z" + data[at + 1 :])
    assert whats(verify(path)) == ["altered"]


def test_a_thousand_findings_are_told_and_the_rest_counted(tmp_path):
    report = verify(write(tmp_path, [b"\n" * 1500]))
    assert (len(report.findings), report.more, report.head) == (1000, 500, None)


def test_what_is_not_there_or_no_file_is_said(tmp_path):
    with pytest.raises(UnknownSession):
        verify(tmp_path / "gone")
    (tmp_path / "link").symlink_to(write(tmp_path, story(1)))
    for path in (tmp_path / "link", tmp_path):
        with pytest.raises(StoreFailed, match="cannot be read"):
            verify(path)
