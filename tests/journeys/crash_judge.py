"""What has to be true of a story that was cut off by crashes: the log, the effects, what was said.

Compares three witnesses: the session's log, the file of effects, and the notes of what somebody
was told. Each check is a sentence; `judge` makes them all.
"""

import shutil
from collections import Counter

from crash_story import SCRIPT
from crashing import Notes

from bridle.engine.history import NOT_RUN, UNKNOWN, fold
from bridle.events import (
    ApprovalAnswered,
    CallIntended,
    Checkpoint,
    MessageAdded,
    PromptReceived,
    Repaired,
    ResponseCompleted,
    Rewound,
    SessionStarted,
    TagsChanged,
    TitleChanged,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
)
from bridle.stores.jsonl import JsonlStore
from bridle.stores.verify import verify
from rig import is_valid


class Story:
    """Everything that is left of one."""

    def __init__(self, folder):
        self.store = JsonlStore(folder / "state")
        self.notes = Notes(folder).read()
        opened = self.noted("opened")
        self.id = opened[-1]["id"] if opened else ""
        path = folder / "effects"
        self.effects = Counter(path.read_text().split()) if path.exists() else Counter()
        self.path = self.store.path(self.id) if opened else None
        self.records = []
        if self.path is not None and self.path.exists() and self.path.stat().st_size:
            self.records = list(self.store.read(self.id))

    def noted(self, kind):
        return [one for one in self.notes if one["kind"] == kind]

    def events(self, kind):
        return [one.event for one in self.records if isinstance(one.event, kind)]

    def same(self, found, wanted):
        """Is each of these there, once? More only where a line was lost that nobody had settled.

        Without power, later lines may be on the disk and an earlier one not; the log tells of it.
        """
        found, wanted = Counter(found), Counter(wanted)
        return found == wanted or (self.lost and wanted <= found and set(found.values()) == {1})

    @property
    def lost(self):
        """Lines that were lost in the middle, as the log tells."""
        return [line for one in self.events(Repaired) for line in one.broken]

    @property
    def calls(self):
        """Every call that the model asked for."""
        replies = [one.message for one in self.events(ResponseCompleted) if one.message]
        return [one for message in replies for one in message.tool_calls]


def look_at_wreck(folder, torn_only=True):
    """Right after a crash: nothing is damaged but a torn end; the calls that nobody knows of."""
    story = Story(folder)
    if not story.records:
        return set()
    found = {one.what for one in verify(story.path).findings if not one.known}
    assert found <= {"torn tail"} or not torn_only
    history = fold(story.records)
    stays = history.is_parked
    open_calls = [one for one in history.open_calls if one.state == "unknown"]
    lost = {key for key, one in history.lost.items() if one.state == "unknown"}
    return lost | {one.call.id for one in open_calls if not (stays and one.reads)}


def judge(folder, unknown):
    """After the story came to its end."""
    story = Story(folder)
    assert "finished" in [one["kind"] for one in story.notes[-2:]]
    assert [one["step"] for one in story.noted("begun")] == list(range(len(SCRIPT)))
    nothing_settled_is_lost(story)
    every_word_given_was_kept(story)
    no_call_ran_twice(story)
    the_unknown_is_told(story, unknown)
    every_prompt_was_heard_once(story)
    every_letter_was_done_once(story)
    every_turn_has_one_end(story)
    the_log_is_sound(story)
    shutil.rmtree(folder)  # what a soak leaves behind is large
    return story


def nothing_settled_is_lost(story):
    """Also a session that could not be taken up had never been acknowledged to anybody."""
    hashes = {one.seq: one.hash for one in story.records}
    gone = [number for number, one in enumerate(story.notes) if one["kind"] == "gone"]
    start = gone[-1] + 1 if gone else 0
    before = [one["kind"] for one in story.notes[:start]]
    assert not {"settled", "sent", "answered"} & set(before)
    for one in story.notes[start:]:
        if one["kind"] == "settled" and one["seq"]:
            assert hashes.get(one["seq"]) == one["hash"], one


def every_word_given_was_kept(story):
    """What a verb returned is in the log, as it was said."""
    prompts = {(one.turn, one.content, one.when) for one in story.events(PromptReceived)}
    assert {(one["turn"], one["text"], one["when"]) for one in story.noted("sent")} <= prompts
    answers = {(one.shown, one.allowed, one.by) for one in story.events(ApprovalAnswered)}
    told = {(one["shown"], one["allowed"], one["by"]) for one in story.noted("answered")}
    assert told <= answers
    assert len(answers) == len({shown for shown, *_ in answers})
    ends = {(one.turn, one.reason) for one in story.events(TurnEnded)}
    told = {(one["turn"], one["reason"]) for one in story.noted("ended")}
    assert {one for one in told if one[1] not in ("parked", "failed")} <= ends
    titles = {one.title for one in story.events(TitleChanged)}
    assert {one["title"] for one in story.noted("titled")} <= titles
    tags = {one.tags for one in story.events(TagsChanged)}
    assert {tuple(one["tags"]) for one in story.noted("tagged")} <= tags
    assert {one["to"] for one in story.noted("rewound")} <= {
        one.to for one in story.events(Rewound)
    }


def no_call_ran_twice(story):
    """No effect twice, none without its intent and its yes, and one where the result says so."""
    assert max(story.effects.values(), default=0) <= 1
    intents = Counter(one.call_id for one in story.events(CallIntended) if not one.read_only)
    assert max(intents.values(), default=0) <= 1
    assert set(story.effects) <= set(intents)
    calls = {one.id: one for one in story.calls}
    assert not {one for one in story.effects if "no" in calls[one].arguments.get("word", "")[:2]}
    results = {one.output.call_id: one.output for one in story.events(ToolResultEvent)}
    working = {one.id for one in story.calls if one.name in ("mark", "poke")}
    worked = {key for key, one in results.items() if not one.is_error and key in working}
    assert worked <= set(story.effects)
    assert all(results[key].text != NOT_RUN for key in story.effects)


def the_unknown_is_told(story, unknown):
    """To the person in the log, to the model in its next request."""
    given = [one.output.call_id for one in story.events(ToolResultEvent)]
    assert story.same(given, [one.id for one in story.calls])
    traces = [one.detail for one in story.events(TraceEvent) if one.kind == "unknown_call"]
    assert {one["callId"] for one in traces} == unknown
    assert len(traces) == len(unknown)
    results = {one.output.call_id: one.output.text for one in story.events(ToolResultEvent)}
    assert {results[one] for one in unknown} <= {UNKNOWN}
    heard = {
        key
        for request in story.noted("request")
        for _, _, outputs in request["messages"]
        for key, text in outputs
        if text == UNKNOWN
    }
    assert unknown <= heard
    for request in story.noted("request"):
        asked = Counter(one for ids in request["calls"] for one in ids)
        answered = Counter(key for _, _, outputs in request["messages"] for key, _ in outputs)
        assert asked == answered
        assert max(asked.values(), default=0) <= 1


def every_prompt_was_heard_once(story):
    """Each prompt enters the conversation once, and no request says it twice."""
    received = [one.seq for one in story.records if isinstance(one.event, PromptReceived)]
    texts = [one.content for one in story.events(PromptReceived)]
    assert len(set(texts)) == len(texts)
    assert story.same([one.prompt for one in story.events(MessageAdded)], received)
    heard = set()
    for request in story.noted("request"):
        words = [text for role, text, _ in request["messages"] if role == "user"]
        assert len(set(words)) == len(words)
        heard.update(words)
    unheard = {one for one in texts if one not in heard and "plan f:" not in one}
    assert not unheard


def every_letter_was_done_once(story):
    """One record each, and the inbox is empty. Some interrupts find nothing to interrupt."""
    done = Counter(one.letter for one in story.events(PromptReceived | ApprovalAnswered))
    for one in story.events(TraceEvent):
        if isinstance(one.detail, dict) and one.detail.get("letter"):
            done[one.detail["letter"]] += 1
    del done[""]
    posted = story.noted("posted")
    assert len(posted) == len({one["letter"] for one in posted})
    assert max(done.values(), default=0) <= 1
    assert {one["letter"] for one in posted if one["verb"] != "interrupt"} <= set(done)
    inbox = story.path.parent / "inbox"
    assert [one.name for one in inbox.glob("*.json")] == [] if inbox.is_dir() else True


def every_turn_has_one_end(story):
    begun = {one.turn for one in story.events(MessageAdded)}
    assert story.same([one.turn for one in story.events(TurnEnded)], begun)


def the_log_is_sound(story):
    """Whole, dense, and the same from its newest checkpoint as from its beginning."""
    report = verify(story.path)
    assert [one for one in report.findings if not one.known] == []
    numbers = [one.seq for one in story.records]
    assert numbers == sorted(set(numbers))
    assert story.lost or numbers == list(range(1, len(numbers) + 1))
    history = fold(story.records)
    assert is_valid(history.transcript)
    assert (history.running, history.waiting, history.pending) == (0, {}, {})
    marks = [n for n, one in enumerate(story.records) if isinstance(one.event, Checkpoint)]
    if marks:
        short = fold(story.records[marks[-1] :])
        assert tuple(short.transcript) == tuple(history.transcript)
        assert (short.grants, short.inbox_ids) == (history.grants, history.inbox_ids)
    assert isinstance(story.records[0].event, SessionStarted)
