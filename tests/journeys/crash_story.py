"""A session with everything in it, played by a process that may die at any moment and by its heirs.

The model does what the newest plan says, step by step; a person answers, steers, queues, rewinds
and sends letters. Whoever comes after a crash first settles what was left behind and goes on with
the first part of the script that nobody has begun.
"""

import asyncio
import os
from contextlib import suppress
from functools import partial

from bridle.engine.engine import Engine
from bridle.engine.engine_config import EngineConfig
from bridle.errors import SessionError, StoreFailed, UnknownApproval, UnknownSession
from bridle.events import Todo, TodosChanged
from bridle.policy import Rule
from bridle.protocols.provider import ProviderInfo, RequestConfig
from bridle.protocols.session import Answer
from bridle.protocols.store import InboxMessage
from bridle.protocols.tool import ToolContext
from bridle.providers.scripted import Scripted
from bridle.tools.function import as_tool, tool
from bridle.workspace.workspace import Workspace

PLAN = "plan "
WINDOW = 9_000  # tokens: a few looks fill it
LOOK = 4_000  # characters


class Model:
    """Does what the newest plan in the conversation says, one step a request."""

    def __init__(self, notes, points, name):
        self._notes, self._points, self._name = notes, points, name
        self._made = 0
        self._done = {}  # steps of a plan that were asked for

    def __call__(self, request):
        if not request.tools:
            return "A summary of what was done so far."
        messages = [
            [one.role, one.content, [[each.call_id, each.text] for each in one.tool_results]]
            for one in request.messages
        ]
        calls = [[each.id for each in one.tool_calls] for one in request.messages]
        self._notes.add("request", messages=messages, calls=calls)
        self._points.pass_by()
        plans = [n for n, one in enumerate(messages) if one[0] == "user" and PLAN in one[1]]
        if not plans:
            return {"text": "Nothing is planned."}
        text = messages[plans[-1]][1]
        steps = text[text.rindex(PLAN) :].partition(":")[2].split("|")
        later = sum(role == "assistant" for role, *_ in messages[plans[-1] :])
        at = self._done.get(text, later)
        self._done[text] = at + 1
        if at >= len(steps):
            return {"text": "That was all.", "pause": 0.0005}
        return {
            "text": "Next comes this.",
            "calls": [self._call(one) for one in steps[at].split(",")],
        }

    def _call(self, words):
        self._made += 1
        name, *rest = words.split()
        arguments = {"word": f"{rest[0]} {self._name}{self._made}"} if rest else {}
        return {"name": name, "arguments": arguments, "id": f"c{self._name}-{self._made}"}


class Tools:
    """Tools with a real effect: a line in a file, with the number of the call."""

    def __init__(self, folder, points):
        self.napping = asyncio.Event()

        def affect(call_id):
            points.pass_by()
            with (folder / "effects").open("ab", buffering=0) as file:
                file.write(f"{call_id}\n".encode())
                points.pass_by()
                os.fsync(file)
            points.pass_by()

        @tool
        async def mark(context: ToolContext, word: str) -> str:
            context.say(f"marking {word}")
            affect(context.call_id)
            return f"made {word}"

        @tool
        async def poke(context: ToolContext) -> str:
            affect(context.call_id)
            return "poked"

        @tool
        async def nap(context: ToolContext) -> str:
            affect(context.call_id)
            self.napping.set()
            await asyncio.Event().wait()
            return "never"

        @tool(read_only=True)
        async def look(context: ToolContext) -> str:
            points.pass_by()
            await asyncio.sleep(0)
            return f"{context.call_id} " + "." * LOOK

        @tool(read_only=True)
        async def todo(context: ToolContext) -> str:
            context.emit(TodosChanged((Todo(f"what {context.call_id} says"),)))
            return "noted"

        found = (as_tool(one) for one in (mark, poke, nap, look, todo))
        self.named = {one.name: one for one in found}


class Person:
    """Who plays the script: sends, answers, and looks now and then at what has become of it."""

    def __init__(self, folder, notes, points, post, chance):
        self.folder, self.notes, self.points, self.post = folder, notes, points, post
        self.chance = chance
        self.name = str(len(notes.read("run")))
        self.tools = Tools(folder, points)
        self.replied = set()
        self.letters = 0
        self.check = lambda: None  # raises where there is nothing to be waited for any more
        self.at_last = lambda: None  # before the last prompt

    def ack(self, kind, **what):
        """Somebody was told that it is done."""
        self.notes.add(kind, **what)
        self.points.pass_by()

    async def send(self, text, when="idle"):
        text = f"[{self.name}] {text}"
        turn = await self.session.send(text, when=when, by="ann")
        self.ack("sent", turn=turn, text=text, when=when)
        return turn

    def letter(self, verb, **what):
        """A letter that another process posts."""
        self.letters += 1
        letter = InboxMessage(f"L{self.name}-{self.letters}", verb, "bo", **what)
        self.post(self.session.id, letter)
        self.points.pass_by()

    async def answer(self, asked):
        """In person, by letter, or both at once: then the first wins."""
        self.replied.add(asked.shown)
        call = asked.call
        no = call.arguments.get("word", "").startswith("no")
        answer = Answer(not no, "session" if call.name == "poke" else "once", "well" if no else "")
        way = self.chance.choice(("self", "self", "letter", "both"))
        if way != "self":
            self.letter(
                "answer",
                call_id=call.id,
                shown=asked.shown,
                allowed=answer.allowed,
                scope=answer.scope,
            )
        if way != "letter":
            try:
                await self.session.answer(call.id, answer, shown=asked.shown, by="ann")
            except UnknownApproval:
                return
            self.ack("answered", shown=asked.shown, allowed=answer.allowed, by="ann")

    async def settle(self, until=lambda: False):
        """Answer and let go on until nothing runs and nothing waits."""
        session = self.session
        while not until():
            self.check()
            pending = session.history.pending
            for asked in list(pending.values()):
                if asked.shown in pending and asked.shown not in self.replied:
                    await self.answer(asked)
            if not session.is_busy and not pending:
                if not session.is_parked and not session.history.waiting:
                    if not self.mail():
                        return
                else:
                    await self.resume()
            if self.tools.napping.is_set():  # the plan of a process that is gone
                await self.wake()
            await asyncio.sleep(0.001)  # a person who looks at the screen now and then

    async def wake(self):
        """End a nap, in person or by letter."""
        self.tools.napping.clear()
        if self.chance.random() < 0.5:
            self.letter("interrupt")
        else:
            await self.session.interrupt(by="ann")

    async def resume(self):
        with suppress(SessionError):  # a letter may have made it go on in the meantime
            await self.session.resume()

    def mail(self):
        """What lies in the inbox."""
        inbox = self.folder / "state" / "sessions" / self.session.id / "inbox"
        return [one for one in inbox.iterdir() if one.suffix == ".json"] if inbox.is_dir() else []

    async def open(self, engine):
        """The session that was left behind, or a new one if nobody was ever told of one."""
        if opened := self.notes.read("opened"):
            try:
                self.session = await engine.session(opened[-1]["id"])
                self.notes.add("resumed")
                return
            except (UnknownSession, StoreFailed) as error:
                if isinstance(error, StoreFailed) and "it holds no log" not in error.message:
                    raise
                self.notes.add("gone", why=str(error))
        self.session = await engine.session()
        self.notes.add("opened", id=self.session.id)


async def look_around(person):
    await person.send("plan a: look,look | todo | look")


async def mark_some(person):
    await person.send("plan b: mark yes | mark no | mark yes,mark yes")


async def steer(person):
    await person.send("plan c: look | mark yes | todo,look")
    await person.send("this is queued", "queue")
    await person.send("this steers", "next_step")
    await person.send("this is queued, too", "queue")


async def write_letters(person):
    await person.send("plan d: mark yes | look | mark yes")
    for when in ("queue", "idle", "next_step"):
        person.letter("send", content=f"[{person.name}] by letter, {when}", when=when)


async def interrupt(person):
    turn = await person.send("plan e: nap")
    await person.send("behind the nap", "queue")
    await person.settle(person.tools.napping.is_set)
    await person.wake()
    result = await person.session.wait(turn)
    person.ack("ended", turn=turn, reason=result.reason)


async def label(person):
    await person.session.rename(f"the title of {person.name}")
    person.ack("titled", title=f"the title of {person.name}")
    await person.session.tag(["one", person.name])
    person.ack("tagged", tags=["one", person.name])


async def rewind(person):
    to = person.session.seq
    turn = await person.send("plan f: look")
    result = await person.session.wait(turn)
    person.ack("ended", turn=turn, reason=result.reason)
    await person.session.rewind(to)
    person.ack("rewound", to=to)


async def fill_the_window(person):
    await person.send("plan g: look,look | look,look | mark yes | look,look | mark no | look,look")


async def abandon(person):
    """Ended while it asks: in `park` that is a parked turn."""
    await person.send("plan h: mark yes,mark yes")
    await person.settle(lambda: person.session.history.pending)
    await person.session.interrupt(by="ann")


async def poke(person):
    turn = await person.send("plan i: poke | poke | look")
    await person.settle()
    result = await person.session.wait(turn)
    person.ack("ended", turn=turn, reason=result.reason)


SCRIPT = (
    look_around,
    mark_some,
    steer,
    rewind,
    write_letters,
    interrupt,
    label,
    fill_the_window,
    abandon,
    poke,
)


def parts(person, store):
    """What its engine is made of; whether a question is waited for or parks is left to chance."""
    info = ProviderInfo("story", "m", context_window=WINDOW)
    return EngineConfig(
        Scripted(Model(person.notes, person.points, person.name), info=info),
        person.tools.named,
        store,
        Workspace(str(person.folder)),
        rules=(Rule("allow", "nap"),),
        on_ask=person.chance.choice(("wait", "park")),
        small=Scripted(lambda request: "A title", info=ProviderInfo("small", "m")),
        config=RequestConfig(max_tokens=1_000),
    )


async def plainly(work, once):
    """Do it."""
    await work()


async def tell(person, store, attempt=plainly):
    """Settle what was left behind, go on with the script, and ask once more at the end.

    `attempt(work, once)` does each piece of it; not each of them can be done twice.
    """
    notes = person.notes
    notes.add("run", name=person.name)
    async with Engine(parts(person, store)) as engine:
        await person.open(engine)
        await attempt(person.settle, once=False)
        for number in range(len(notes.read("begun")), len(SCRIPT)):
            notes.add("begun", step=number)
            await attempt(partial(SCRIPT[number], person), once=True)
            await attempt(person.settle, once=False)
        person.at_last()
        await person.send("is that all?")
        await person.settle()
    notes.add("finished")
