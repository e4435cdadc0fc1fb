"""Logs of every kind, written verb by verb: as a session writes them, and as nobody would."""

from hypothesis import strategies as st

from bridle.engine.compaction import note, plan, stand_in
from bridle.engine.history import History, fold
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    BrokenLine,
    CallIntended,
    Compacted,
    Forked,
    GrantRevoked,
    MessageAdded,
    ModeChanged,
    PromptReceived,
    PromptWithdrawn,
    Repaired,
    ResponseCompleted,
    Rewound,
    SessionStarted,
    TextDelta,
    Todo,
    TodosChanged,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    TurnParked,
    UnknownEvent,
    UsageReported,
)
from bridle.messages import File, Image, Message, Text, Thinking, ToolCall, ToolOutput, user
from bridle.protocols.codec import decode_data, encode_data
from bridle.protocols.store import Record
from bridle.usage import Usage

MODEL = "m"
PICTURE = Image("image/png", "aGk=")
LETTER = File("text/plain", "aGk=", "letter.txt")


class Chronicle:
    """A log, its fold as it grew, and the thoughts that each vendor has issued in it."""

    def __init__(self):
        self.records = []
        self.history = History()
        self.issued = []  # replies as they were made
        self.seen = []  # each transcript that was handed out, and what it was then
        self.foreign = []  # at each record: were the newest calls brought in from elsewhere?
        self._names = 0
        self.add(SessionStarted("s", workspace="/w"))

    def add(self, event):
        """One record, as it is read again."""
        seq = len(self.records) + 1
        event = decode_data(encode_data(event))
        self.records.append(Record(seq, f"t{seq}", event, f"h{seq}"))
        self.history.apply(self.records[-1])
        self.foreign.append(_is_foreign(event, self.foreign[-1] if self.foreign else False))
        found = self.history.transcript
        self.seen.append((found, tuple(found)))

    def name(self, word):
        """A name that was not there before."""
        self._names += 1
        return f"{word}_{self._names}"

    def prompt(self, parts, when, enters):
        """A prompt is sent, and enters at once or later."""
        turn = self.history.running if when == "next_step" else self.history.turn + 1
        text = "".join(part.text for part in parts if isinstance(part, Text))
        self.add(PromptReceived(text, turn or 1, "me", when, parts))
        if enters:
            self.enter()

    def enter(self):
        """What waits comes into the conversation."""
        for seq, prompt in list(self.history.waiting.items()):
            parts = prompt.parts or (Text(prompt.content),)
            self.add(MessageAdded(Message("user", parts), seq))

    def reply(self, vendor, text, thoughts, ids, stop):
        """A reply of that vendor; a vendor that thinks gives every call an id of its own."""
        parts = [self._thought(vendor, one) for one in thoughts]
        parts += [Text(text)] if text is not None else []
        for one in ids:
            named = self.name("toolu") if thoughts and vendor != "local" else one
            broken = "{" if one == "broken" else ""
            parts.append(ToolCall(named, "a.tool" if one == "" else "look", {"at": one}, broken))
        if len({part.id for part in parts if isinstance(part, ToolCall)}) < len(ids):
            stop = "brought"  # the loop tells calls apart; only history from elsewhere does not
        message = Message("assistant", tuple(parts))
        self.issued.append(message)
        brought = stop == "brought"
        self.add(MessageAdded(message) if brought else ResponseCompleted(stop, message))

    def _thought(self, vendor, text):
        meta = {"api": vendor, "model": MODEL}
        if vendor == "anthropic":
            sealed = {"signature": self.name("sig")} if text else {"redacted": self.name("red")}
        elif vendor == "openai":
            sealed = {"id": self.name("rs"), "encrypted_content": self.name("enc")}
        else:
            sealed = {"field": "reasoning_content"} if vendor == "openai-chat" else {}
        return Thinking(text, {**meta, **sealed})

    def result(self, which, text, media):
        """A result for an open call, for one that is not open any more, or for none."""
        calls = [one.call.id for one in self.history.open_calls] or ["gone"]
        call_id = calls[which % len(calls)] if which < 8 else "gone"
        self.add(ToolResultEvent(ToolOutput(call_id, text, which % 2 == 0, "look", None, media)))

    def step(self, vendor, thoughts, ids, text):
        """A reply with calls that all run and all come back, the last one first."""
        self.reply(vendor, None, thoughts, ids, "tool_use")
        for place in range(len(self.history.open_calls)):
            self.intent(place)
        for place in reversed(range(len(self.history.open_calls))):
            self.result(place, text, ())

    def turn(self, vendor, steps, text):
        """From a prompt to silence, as it mostly goes."""
        self.prompt((Text("do it"),), "idle", True)
        for thoughts, ids in steps:
            self.step(vendor, thoughts, ids, text)
        self.reply(vendor, "done", [], [], "complete")
        self.end("done")

    def intent(self, which):
        """An open call begins."""
        for one in self.history.open_calls[which : which + 1]:
            self.add(CallIntended(one.call.id, one.call.name, which == 0))

    def asked(self, which):
        """A question about an open call."""
        for one in self.history.open_calls[which : which + 1]:
            self.add(ApprovalAsked(one.call, self.name("shown")))

    def answered(self, allowed):
        """The oldest question is answered."""
        for shown, one in list(self.history.pending.items())[:1]:
            self.add(ApprovalAnswered(one.call.id, allowed, "me", "session", "", shown))

    def brought(self, message):
        """A message from elsewhere."""
        self.add(MessageAdded(message))

    def end(self, reason):
        """The turn ends, or waits."""
        turn = self.history.running or 1
        self.add(TurnParked(turn) if reason == "parked" else TurnEnded(turn, reason))

    def fork(self):
        """From here on it is another session."""
        self.add(Forked("other", len(self.records)))

    def rewind(self, part):
        """Back to what it was at an earlier record."""
        to = int(part * len(self.records))
        then = fold(self.records[:to])
        self.add(Rewound(to, "me", tuple(then.transcript), then.todos))

    def compact(self, part, written):
        """Shortened by the real planner, to some part of what it was."""
        before = tuple(self.history.transcript)
        whole = plan(self.history.transcript, 1 << 40, 0).tokens
        found = plan(self.history.transcript, int(part * whole), 20)
        kept = found.kept
        if found.old:
            words = "What was." if written else note(found.old, 300)
            kept = (stand_in(found.old, words, written=written), *kept)
        if kept != before:
            self.add(Compacted(kept, len(found.old), found.shortened, written, whole, 1))

    def checkpoint(self):
        """Everything so far, in one record; nobody writes one while history is brought in."""
        if not self.foreign[-1]:
            self.add(self.history.checkpoint(self.records[-1].hash))


def _is_foreign(event, before):
    message = getattr(event, "message", None)
    if message is None or not message.parts or message.role == "tool":
        return before
    return isinstance(event, MessageAdded) and bool(message.tool_calls)


words = st.sampled_from(["", " ", "hm", "long " * 700, "é", "x"])
said = st.sampled_from([None, "", "\n", "so", "well then"])
thought = st.lists(st.sampled_from(["", "I see", "first this"]), max_size=2)
ids = st.lists(st.sampled_from(["0", "1", "call_0", "f:0", "", "broken", "y" * 70]), max_size=3)
vendors = st.sampled_from(["anthropic", "openai", "openai-chat", "local"])
stops = st.sampled_from(["complete", "tool_use", "max_tokens", "interrupted", "brought"])
spoken = st.sampled_from(
    [(Text("do it"),), (Text("look"), PICTURE), (LETTER,), (Text("a" * 3000),), (Text(" "),)]
)
foreign = st.sampled_from(
    [
        user("from elsewhere"),
        user(""),
        Message("assistant", (Text("hello"),)),
        Message("assistant", (Text(""),)),
        Message("assistant", (ToolCall("0", "look"), ToolCall("0", "look"))),
        Message("tool", (ToolOutput("0", "found"), ToolOutput("9", "stray"))),
    ]
)
plain = st.sampled_from(
    [
        TextDelta("so"),
        TraceEvent("x"),
        UsageReported(Usage(5, 5)),
        TodosChanged((Todo("one"),)),
        Repaired(3, (BrokenLine(2, 9, "h", "cut"),)),
        UnknownEvent({"type": "tomorrow", "x": 1}),
        ModeChanged("plan"),
        ModeChanged("auto"),
        GrantRevoked(),
        PromptWithdrawn(2, 1),
        PromptWithdrawn(9, 3),
        SessionStarted("s", resumed=True),
        ResponseCompleted("error"),
    ]
)
small = st.integers(0, 9)
few = st.integers(0, 1)
parts_of_one = st.sampled_from([0.0, 0.1, 0.3, 0.6, 0.9, 1.0])
media = st.sampled_from([(), (), (PICTURE,), (LETTER,)])
whens = st.sampled_from(["idle", "queue", "next_step"])
reasons = st.sampled_from(["done", "failed", "interrupted", "parked"])

verbs = st.one_of(
    st.tuples(st.just("prompt"), spoken, whens, st.booleans()),
    st.tuples(st.just("enter")),
    st.tuples(st.just("reply"), vendors, said, thought, ids, stops),
    st.tuples(st.just("reply"), vendors, said, thought, ids, stops),
    st.tuples(st.just("result"), small, words, media),
    st.tuples(st.just("result"), small, words, media),
    st.tuples(st.just("intent"), few),
    st.tuples(st.just("asked"), few),
    st.tuples(st.just("step"), vendors, thought, ids, words),
    st.tuples(st.just("turn"), vendors, st.lists(st.tuples(thought, ids), max_size=3), words),
    st.tuples(st.just("answered"), st.booleans()),
    st.tuples(st.just("brought"), foreign),
    st.tuples(st.just("end"), reasons),
    st.tuples(st.just("fork")),
    st.tuples(st.just("rewind"), parts_of_one),
    st.tuples(st.just("compact"), parts_of_one, st.booleans()),
    st.tuples(st.just("compact"), parts_of_one, st.booleans()),
    st.tuples(st.just("checkpoint")),
    st.tuples(st.just("add"), plain),
)


def written(steps):
    """The log that these verbs write."""
    log = Chronicle()
    for verb, *arguments in steps:
        getattr(log, verb)(*arguments)
    return log


chronicles = st.lists(verbs, min_size=4, max_size=20).map(written)
