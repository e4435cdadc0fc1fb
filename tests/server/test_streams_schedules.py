"""Whatever happens in whatever order, a client sees every record once: no gap, no repeat (A10)."""

import asyncio
import tempfile
from contextlib import aclosing

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from watching_rig import House, Parser, note

from rig import SOAK, run

ANY = st.integers(0, 10_000)
STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 40)),
    st.tuples(st.just("settle"), st.just(0)),
    st.tuples(st.just("move"), st.sampled_from(["here", "elsewhere", "nobody"])),
    st.tuples(st.just("join"), ANY),
    st.tuples(st.just("vanish"), ANY),
    st.tuples(st.just("pass"), st.integers(1, 5)),
)


class Client:
    """Watches, may vanish in the middle of a byte stream, and comes back with the id it was sent.

    What it saw above that id it forgets, as every client has to.
    """

    def __init__(self, house, session_id, after):
        self.house, self.session_id, self.after = house, session_id, after
        self.position, self.seen = after, []
        self.wanted, self.room = 1 << 60, -1
        self.task = asyncio.create_task(self._watch())

    def vanish_after(self, size):
        """Take so many bytes more, and then be gone; and come back."""
        self.room = size

    async def until(self, seq):
        """Has it seen that record?"""
        self.wanted = seq
        if self.seen and self.seen[-1] >= seq:
            self.task.cancel()
        await asyncio.wait([self.task])
        if not self.task.cancelled():
            self.task.result()

    async def _watch(self):
        while await self._connection():
            self.seen = [seq for seq in self.seen if seq <= self.position]

    async def _connection(self):
        parser = Parser()
        stream = self.house.streams.session(self.session_id, self.position)
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                if self.room >= 0:
                    chunk, whole = chunk[: self.room], chunk
                    self.room -= len(chunk)
                for name, data, _ in parser.feed(chunk):
                    assert name == "trace"
                    self.seen.append(data["seq"])
                self.position = int(parser.position or self.position)
                if self.seen and self.seen[-1] >= self.wanted:
                    return False
                if self.room >= 0 and len(chunk) < len(whole):
                    self.room = -1
                    return True
        raise AssertionError("the stream ended by itself")


class Story:
    """One session, moved between here, elsewhere and nobody, and those who watch it."""

    def __init__(self, house, session):
        self.house, self.session, self.log = house, session, None
        self.id, self.seq, self.clients = session.id, session.seq, []

    async def append(self, count):
        if self.session is None and self.log is None:
            await self.move("here")
        for _ in range(count):
            self.seq += 1
            (self.session.emit if self.session else self.log.append)(note(self.seq))

    async def settle(self, _):
        held = self.log or (self.session and self.session._log)
        if held:
            await held.settled()

    async def move(self, where):
        if self.session is not None:
            await self.house.let_go(self.session)
        elif self.log is not None:
            await self.log.close()
        self.session = self.log = None
        if where == "here":
            self.session = await self.house.open(self.id)
        elif where == "elsewhere":
            self.log = await self.house.elsewhere.resume(self.id, lambda record: None)

    async def join(self, number):
        held = self.log or (self.session and self.session._log)
        most = held.durable if held else self.seq  # nobody has an id above that
        self.clients.append(Client(self.house, self.id, number % (most + 1)))

    async def vanish(self, number):
        if self.clients:
            self.clients[number % len(self.clients)].vanish_after(number)

    async def _pass(self, rounds):
        for _ in range(rounds):
            await asyncio.sleep(0)


async def told(steps):
    with tempfile.TemporaryDirectory() as folder:
        async with House(folder) as house:
            story = Story(house, await house.begun())
            for verb, value in steps:
                await (story._pass if verb == "pass" else getattr(story, verb))(value)
            await story.append(1)
            await story.settle(0)
            await asyncio.gather(*(client.until(story.seq) for client in story.clients))
            for client in story.clients:
                assert client.seen == list(range(client.after + 1, story.seq + 1))
            assert len(house.streams) == 0
            await story.move("nobody")


@example([("join", 0), ("append", 3), ("pass", 3), ("move", "nobody"), ("move", "here")])
@example([("join", 1), ("move", "elsewhere"), ("append", 9), ("vanish", 300), ("move", "here")])
@settings(
    max_examples=400 if SOAK else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(STEPS, max_size=25))
def test_every_client_sees_every_record_exactly_once(steps):
    run(told(steps))
