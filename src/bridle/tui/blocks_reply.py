"""The model's reply under way: text and thoughts as they come, then the whole message. Pure."""

from collections.abc import Callable

from bridle.events import ResponseCompleted, TextDelta, ThinkingDelta
from bridle.messages import Message, Text, Thinking, ToolCall
from bridle.presentation.blocks import Block, Call, GrowingText, Reply, Thought
from bridle.presentation.calls import call_subject, long_command
from bridle.protocols.store import Record


class ReplyFold:
    """One reply at a time; what it consists of, in the order in which it came."""

    def __init__(self, add: Callable[[Block], int], touch: Callable[[int], None]) -> None:
        self._add = add
        self._touch = touch
        self._open: tuple[int, GrowingText] | None = None
        self._said: list[tuple[int, Reply]] = []
        self._thought: list[tuple[int, Thought]] = []
        self._calls: dict[str, tuple[int, Call]] = {}  # the newest of each id

    def text(self, event: TextDelta, record: Record) -> None:
        """Some more of the answer."""
        if self._open is None or not isinstance(self._open[1], Reply):
            if not event.text.strip():
                return  # models begin with line ends
            self.pause()
            said = Reply()
            self._open = self._add(said), said
            self._said.append((self._open[0], said))
        self._grow(event.text)

    def thinking(self, event: ThinkingDelta, record: Record) -> None:
        """Some more of the thoughts."""
        if self._open is None or not isinstance(self._open[1], Thought):
            if not event.text.strip():
                return
            self.pause()
            thought = Thought()
            self._open = self._add(thought), thought
            self._thought.append((self._open[0], thought))
        self._grow(event.text)

    def call(self, call_id: str, name: str, *, anew: bool = False) -> tuple[int, Call]:
        """The call of that id, and its place; it is added where there is none."""
        if anew or call_id not in self._calls:
            self.pause()
            call = Call(call_id, name)
            self._calls[call_id] = self._add(call), call
        return self._calls[call_id]

    def known(self, call_id: str) -> tuple[int, Call] | None:
        """The call of that id, if it was ever heard of."""
        return self._calls.get(call_id)

    def ready(self, call: ToolCall) -> tuple[int, Call]:
        """Its arguments are whole."""
        known = self._calls.get(call.id)
        place, block = self.call(
            call.id, call.name, anew=known is not None and not known[1].is_open
        )
        block.name, block.subject, block.command = call.name, call_subject(call), long_command(call)
        if block.state == "writing":
            block.state = "ready"
            plan = call.arguments.get("plan")
            if call.name == "exit_plan_mode" and isinstance(plan, str) and plan.strip():
                self._add(Reply([plan], True))  # it is to be read as what it is: Markdown
        self._touch(place)
        return place, block

    def pause(self) -> None:
        """What comes next stands below."""
        if self._open is not None:
            place, growing = self._open
            growing.settle(growing.text)
            self._touch(place)
            self._open = None

    def complete(self, event: ResponseCompleted) -> None:
        """The reply is over; what its message says counts."""
        self.pause()
        if event.message is not None:
            self._reconcile(event.message)
        self._said, self._thought = [], []

    def discard(self) -> bool:
        """Mark the reply under way as discarded; return whether any of its words are shown."""
        self.pause()
        words = [*self._said, *self._thought]
        for place, growing in words:
            growing.discarded = True
            self._touch(place)
        self._said, self._thought, self._calls = [], [], {}
        return bool(words)

    def _reconcile(self, message: Message) -> None:
        texts = [
            part.text for part in message.parts if isinstance(part, Text) and part.text.strip()
        ]
        if len(texts) == len(self._said):
            for (place, said), text in zip(self._said, texts, strict=True):
                if said.text != text:
                    self._touch(place)
                said.settle(text)
        elif not self._said:
            self._unheard(message)

    def _unheard(self, message: Message) -> None:
        """A reply of which no piece of text came before."""
        for part in message.parts:
            if isinstance(part, Text) and part.text.strip():
                self._add(Reply([part.text], True))
            elif isinstance(part, Thinking) and part.text.strip() and not self._thought:
                self._add(Thought([part.text], True))
            elif isinstance(part, ToolCall) and not self._is_open(part.id):
                self.ready(part)

    def _is_open(self, call_id: str) -> bool:
        known = self._calls.get(call_id)
        return known is not None and known[1].is_open

    def _grow(self, text: str) -> None:
        if self._open is not None:
            self._open[1].grow(text)
            self._touch(self._open[0])
