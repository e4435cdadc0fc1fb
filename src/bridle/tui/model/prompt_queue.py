"""Send, queue, steer and take back the prompts of one session, and stop its turn.

Stopping keeps what was queued: those prompts are withdrawn first and held here until the person
sends them or takes them back.
"""

from bridle.errors import AgentError, SessionBusy
from bridle.events import When
from bridle.protocols.session import Conversation


class PromptQueue:
    """The prompts of one session that wait; `held` ones are on hold since the turn was stopped."""

    def __init__(self, session: Conversation) -> None:
        self.session = session
        self.held: list[str] = []
        self.stopping = False

    async def send(self, text: str, when: When) -> int:
        """Send a prompt now or, while a turn runs, to its queue or its next step."""
        if when == "idle" or not self.session.is_busy:
            try:
                return await self.session.send(text, when="idle")
            except SessionBusy:
                when = "queue" if when == "idle" else when  # a turn has begun meanwhile
        return await self.session.send(text, when=when)

    async def stop(self) -> bool:
        """Stop the running turn; return False if none runs."""
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
        """Return the newest prompt that was not sent yet; empty if there is none."""
        if self.held:
            return self.held.pop()
        for seq, prompt in reversed(list(self.session.history.waiting.items())):
            if prompt.when != "next_step":
                await self.session.withdraw(seq)
                return prompt.content
        return ""

    async def release(self) -> bool:
        """Send the oldest prompt on hold; return False if there is none."""
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
                continue  # it has begun meanwhile
            self.held.append(prompt.content)
