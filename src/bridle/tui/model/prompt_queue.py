"""Carries a person's verbs to the session: send, queue, steer, stop, take back. Shows nothing.

A stop keeps what was queued: those prompts are taken out of the queue first and held here, until
the person sends them or takes them back.
"""

from bridle.errors import AgentError, SessionBusy
from bridle.events import When
from bridle.protocols.session import Conversation


class PromptQueue:
    """The verbs of one session."""

    def __init__(self, session: Conversation) -> None:
        self.session = session
        self.held: list[str] = []
        self.stopping = False

    async def send(self, text: str, when: When) -> int:
        """Send it now or, where a turn runs, into its queue or to its next step."""
        if when == "idle" or not self.session.is_busy:
            try:
                return await self.session.send(text, when="idle")
            except SessionBusy:
                when = "queue" if when == "idle" else when  # one began in between
        return await self.session.send(text, when=when)

    async def stop(self) -> bool:
        """Stop the running turn; False where none runs."""
        session = self.session
        if not (session.is_busy or session.is_parked) or self.stopping:
            return False
        self.stopping = True
        try:
            await self._hold()
            await session.interrupt()
        finally:
            self.stopping = False
        return True

    async def take_back(self) -> str:
        """The newest prompt that was not sent yet; empty where there is none."""
        if self.held:
            return self.held.pop()
        for seq, prompt in reversed(list(self.session.history.waiting.items())):
            if prompt.when != "next_step":
                await self.session.withdraw(seq)
                return prompt.content
        return ""

    async def release(self) -> bool:
        """Send the oldest prompt that was held back; False where there is none."""
        if not self.held:
            return False
        text = self.held.pop(0)
        try:
            await self.send(text, "queue")
        except AgentError:
            self.held.insert(0, text)
            raise
        return True

    async def _hold(self) -> None:
        for seq, prompt in list(self.session.history.waiting.items()):
            try:
                await self.session.withdraw(seq)
            except AgentError:
                continue  # it has begun in between
            self.held.append(prompt.content)
