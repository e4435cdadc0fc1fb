"""A damaged log: whole records are kept, what was lost is said, once (A8; SECURITY, durability)."""

import asyncio
import json
import random
from pathlib import Path

import pytest

from bridle.errors import StoreFailed
from bridle.events import (
    MessageAdded,
    PromptReceived,
    Repaired,
    TextDelta,
    TraceEvent,
    TurnEnded,
)
from bridle.messages import Message, Text
from bridle.protocols.codec import line_hash
from bridle.stores import reader as reader_module
from bridle.stores.hash_chain import BODY_PROVEN, Chain, fingerprint, is_proven
from bridle.stores.jsonl import JsonlStore
from bridle.stores.verify import verify
from rig import SOAK, run, seeds


def story(count):
    """Events of all sorts and lengths."""
    for number in range(count):
        yield (
            PromptReceived(f"J*{number} ä語🙂\n\x00", number),
            TextDelta("J" * (number % 40)),
            TraceEvent("noise", {"data": {"type": "checkpoint", "seq": number}}),
            MessageAdded(Message("user", (Text("*J" * (number % 9)),)), number),
            TurnEnded(number, "done"),
        )[number % 5]


async def make(state, events, session_id="s"):
    store = store_in(state)
    log = store.create(session_id)
    for event in events:
        log.append(event)
    await log.close()
    store.close()
    return log.path


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """The bytes of a log of 200 records."""
    return asyncio.run(make(tmp_path_factory.mktemp("original"), story(200))).read_bytes()


async def take(store, session_id="s"):
    """Take a log up and let it go: the records that it was read into, and what was mended."""
    records = []
    log = await store.resume(session_id, records.append)
    await log.close()
    return records, log.repair or Repaired()


OPEN = []


def store_in(state):
    """Not synced: these tests are about what is read."""
    OPEN.append(JsonlStore(state, "process"))
    return OPEN[-1]


@pytest.fixture(autouse=True)
def _closed():
    yield
    while OPEN:
        OPEN.pop().close()


def place(state, content, session_id="s"):
    path = state / "sessions" / session_id / "log.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def checked(store, content, whole):
    """Load damaged bytes: exactly these numbers are kept, and the second time all is well."""
    return run(check(store, content, whole))


async def check(store, content, whole):
    path = place(store.folder, content)
    first, mended = await take(store)
    kept = list(store.read("s"))
    second, nothing = await take(store)
    said = [one for one in kept if isinstance(one.event, Repaired)]
    assert [one.seq for one in kept if one not in said] == whole
    assert [one for one in kept if not isinstance(one.event, TextDelta)] == first == second
    assert nothing == Repaired()
    assert [one.event for one in said] == ([] if mended == Repaired() else [mended])
    assert path.read_bytes().startswith(content[: len(content) - mended.torn])
    assert [one for one in verify(path).findings if not one.known] == []
    return mended


def cuts(original):
    """Every byte in a soak; otherwise a tenth, and a third of the last three lines."""
    last = len(original.rstrip(b"\n").rsplit(b"\n", 3)[0])
    every = range(len(original) + 1)
    some = {*every[::397], *range(last, len(original) + 1, 3), len(original) - 1}
    return every if SOAK else sorted({*some, original.index(b"\n")})


def test_a_log_cut_at_any_byte_keeps_every_whole_line_and_says_what_went(original, state):
    """A8."""
    ends = [index + 1 for index, byte in enumerate(original) if byte == 10]

    async def cut_at(store, cut):
        count = sum(1 for end in ends if end <= cut)
        if cut + 1 in ends:  # it lacks its end, and its hash proves it
            mended = await check(store, original[:cut], list(range(1, count + 2)))
            why = "only its end was missing; it was kept"
            assert [(one.after, one.why) for one in mended.broken] == [(count, why)]
            assert not mended.torn
        elif 0 < cut < ends[0]:  # not one line is whole
            path = place(state, original[:cut])
            with pytest.raises(StoreFailed, match="it holds no log"):
                await take(store)
            assert path.read_bytes() == original[:cut]
        else:
            mended = await check(store, original[:cut], list(range(1, count + 1)))
            assert mended == Repaired(cut - ends[count - 1] if count else 0)

    async def everywhere():
        store = store_in(state)
        for cut in cuts(original):
            await cut_at(store, cut)
        store.close()

    asyncio.run(everywhere())


@pytest.mark.parametrize("seed", seeds(1000))
def test_a_flipped_bit_costs_at_most_the_line_that_it_is_in(seed, original, state):
    """A8: and the line is known by its hash in the record of the repair."""
    chance = random.Random(seed)
    where, bit = chance.randrange(len(original)), chance.randrange(8)
    damaged = bytearray(original)
    damaged[where] ^= 1 << bit
    number = original.count(b"\n", 0, where) + 1
    is_end = original[where] == 10
    in_hash = original.find(b"\n", where) - where <= 43 and damaged[where] != 10
    kept = is_end or (in_hash and number < 200)  # the next line proves all but the hash
    whole = [one for one in range(1, 201) if one != number or kept]
    store = store_in(state)
    if is_end and number == 200:  # only its end is gone: nothing says that the line is whole
        whole.remove(200)
    mended = checked(store, bytes(damaged), whole)
    store.close()
    lines = bytes(damaged).split(b"\n")
    if number == 200:
        assert mended.torn or [one.after for one in mended.broken] == [199]
    elif damaged[where] == 10:  # one line became two
        hurt = lines[number - 1 : number + 1]
        assert [one.hash for one in mended.broken] == [fingerprint(line) for line in hurt]
    else:
        hurt = lines[number - 1]
        after = number - 1
        assert [(one.after, one.size, one.hash) for one in mended.broken] == [
            (after, len(hurt), fingerprint(hurt))
        ]


@pytest.mark.parametrize("seed", seeds(300))
def test_any_amount_of_damage_is_survived(seed, original, state):
    """Zeros, noise, lines removed, doubled, swapped, glued: it loads, and says so once."""
    chance, damaged = random.Random(seed), bytearray(original)
    for _ in range(chance.randrange(1, 6)):
        start = chance.randrange(len(damaged))
        size = chance.choice((1, 10, 300, 4096))
        part = damaged[start : start + size]
        damaged[start : start + size] = chance.choice(
            (bytes(len(part)), chance.randbytes(len(part)), b"", part + part, b"\n" * len(part))
        )
    store = store_in(state)
    checked(store, bytes(damaged), _surviving(bytes(damaged)))
    store.close()


def _surviving(content):
    *lines, rest = content.split(b"\n")
    chain, found = Chain(), []
    for line in lines:
        found += [record.seq for record in chain.examine(line).records]
    if is_proven(rest, chain.head):
        found.append(chain.last + 1)
    assert set(found) <= set(range(1, 201)), rest
    return found


def test_a_sea_of_damage_is_one_record_of_bounded_size(original, state):
    lines = parts(original)[:3]
    noise = [b"%d" % number for number in range(5000)]
    mended = checked(store_in(state), joined([*lines, *noise, *lines]), [1, 2, 3])
    assert len(mended.broken) == 1001
    assert mended.broken[-1].why == "4003 more lines were damaged"


def parts(original):
    return original.split(b"\n")[:-1]


def joined(lines):
    return b"".join(line + b"\n" for line in lines)


def test_lines_that_are_glued_together_are_both_kept(original, state):
    lines = parts(original)[:6]
    glued = [*lines[:2], lines[2] + lines[3], *lines[4:]]
    mended = checked(store_in(state), joined(glued), [1, 2, 3, 4, 5, 6])
    assert [(one.after, one.why) for one in mended.broken] == [
        (2, "there are several records in one line; the whole ones were kept")
    ]


def test_a_line_whose_hash_alone_is_damaged_is_kept_if_the_next_one_proves_it(original, state):
    lines = parts(original)[:6]
    hurt = lines[2][:-10] + (b"0" if lines[2][-10:-9] != b"0" else b"1") + lines[2][-9:]
    mended = checked(store_in(state), joined([*lines[:2], hurt, *lines[3:]]), [1, 2, 3, 4, 5, 6])
    assert [(one.after, one.why) for one in mended.broken] == [(2, BODY_PROVEN)]


def test_a_line_whose_hash_and_body_are_damaged_is_not_kept(original, state):
    lines = parts(original)[:6]
    hurt = lines[2].replace(b"noise", b"nOise")[:-10] + b"z" + lines[2][-9:]
    assert hurt != lines[2][:-10] + b"z" + lines[2][-9:]
    mended = checked(store_in(state), joined([*lines[:2], hurt, *lines[3:4]]), [1, 2])
    assert [one.after for one in mended.broken] == [2, 2]


def test_a_line_behind_one_that_is_missing_says_which_is_missing(original, state):
    lines = parts(original)[:7]
    mended = checked(store_in(state), joined([*lines[:2], *lines[3:]]), [1, 2, 5, 6, 7])
    assert [(one.after, one.why) for one in mended.broken] == [
        (2, "record 3 is missing, so nothing proves it")
    ]


@pytest.mark.parametrize("rest", [b"junk", b"", b'{"seq":6,"timestamp":"2026', bytes(500)])
def test_a_last_line_that_is_no_record_is_cut_even_with_its_end(rest, original, state):
    """Its pages may have come to the disk in any order."""
    store, lines = store_in(state), parts(original)[:5]
    mended = checked(store, joined([*lines, rest]), [1, 2, 3, 4, 5])
    assert mended == Repaired(len(rest) + 1)
    assert [one.seq for one in store.read("s")] == [1, 2, 3, 4, 5, 6]


def test_a_line_that_is_there_twice_counts_once(original, state):
    lines = parts(original)[:5]
    mended = checked(store_in(state), joined([*lines[:3], *lines[2:]]), [1, 2, 3, 4, 5])
    assert [(one.after, one.why) for one in mended.broken] == [(3, "its number was used before")]


def chain_of(numbers, previous=""):
    """Lines with these numbers, as somebody with a bug would write them: hashes and all."""
    for number in numbers:
        body = b'{"seq":%d,"timestamp":"2026-01-31T10:30:00.000Z","data":{"type":"todo"}' % number
        previous = line_hash(body, previous)
        yield b'%b,"hash":"%b"}' % (body, previous.encode())


def test_numbers_that_are_missing_are_reported_and_never_used_again(state):
    store = store_in(state)
    mended = checked(store, joined(chain_of([1, 2, 7, 8])), [1, 2, 7, 8])
    assert [(one.after, one.why) for one in mended.broken] == [
        (2, "the records 3 to 6 are missing")
    ]
    assert [one.seq for one in store.read("s")][-1] == 9


def test_numbers_that_go_back_are_passed_over(state):
    """Even with hashes that fit: two records of one number are one too many."""
    store = store_in(state)
    place(state, joined(chain_of([1, 2, 3, 2, 4])))
    records, mended = run(take(store))
    assert [one.seq for one in records] == [1, 2, 3, 4, 5]
    assert [(one.after, one.why) for one in mended.broken] == [(3, "its number was used before")]


def test_a_clock_that_goes_back_a_day_changes_nothing(state, monkeypatch):
    path = run(make(state, story(3)))
    content = path.read_bytes()
    late = content.replace(b'"timestamp":"20', b'"timestamp":"30')
    lines, previous = [], ""
    for line in parts(late)[:2] + parts(content)[2:]:
        body = line[:-43]
        previous = line_hash(body, previous)
        lines.append(b'%b,"hash":"%b"}' % (body, previous.encode()))
    assert checked(store_in(state), joined(lines), [1, 2, 3]) == Repaired()


def test_a_line_without_end_is_passed_over_in_little_memory(original, state, monkeypatch):
    """A 100 MB line, told by its size and its hash; here a limit stands for it."""
    monkeypatch.setattr(reader_module, "MAX_LINE", 3 << 20)
    lines = parts(original)[:4]
    endless = b"x" * (5 << 20)
    mended = checked(store_in(state), joined([*lines[:2], endless, *lines[2:]]), [1, 2, 3, 4])
    assert [(one.after, one.size, one.hash, one.why) for one in mended.broken] == [
        (2, 5 << 20, fingerprint(endless), "it is too long")
    ]


def test_a_record_that_no_reader_would_take_is_not_written(state, monkeypatch):
    monkeypatch.setattr("bridle.stores.jsonl.MAX_LINE", 2000)

    async def whole():
        store = store_in(state)
        log = store.create("s")
        with pytest.raises(StoreFailed, match="too large to be stored"):
            log.append(TraceEvent("x" * 2000))
        log.append(TraceEvent("y"))
        await log.close()
        store.close()
        return [one.event for one in store.read("s")]

    assert run(whole()) == [TraceEvent("y")]


def test_nothing_is_said_twice_and_new_damage_is_said(original, state):
    store = store_in(state)
    lines = parts(original)[:5]
    checked(store, joined([lines[0], b"junk", *lines[1:]]), [1, 2, 3, 4, 5])
    path = Path(state / "sessions" / "s" / "log.jsonl")
    with path.open("ab") as file:
        file.write(b"torn")
    _, mended = run(take(store))
    assert mended == Repaired(4)
    assert [one.event.torn for one in store.read("s", 5)] == [0, 4]


def test_a_log_of_another_program_may_have_no_hashes(state):
    """A8: but where there are hashes, a line without one is somebody's doing."""
    foreign = [
        json.dumps({"timestamp": "2024-01-15T10:30:00Z", "data": {"type": "user_prompt"}}).encode()
    ] * 2
    store = store_in(state)
    assert checked(store, joined(foreign), [1, 2]) == Repaired()
    run(_append(store, TraceEvent("ours")))
    path = state / "sessions" / "s" / "log.jsonl"
    mended = checked(store, path.read_bytes() + foreign[0] + b"\n", [1, 2, 3])
    assert [(one.after, one.why) for one in mended.broken] == [(3, "it has no hash")]


async def _append(store, event):
    log = await store.resume("s", lambda record: None)
    log.append(event)
    await log.close()
    store.close()
