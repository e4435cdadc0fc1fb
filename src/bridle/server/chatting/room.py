"""What the chat's routes work with, all of it handed in."""

from pathlib import Path

from bridle.chat.app import ChatApp
from bridle.chat.service import Tell
from bridle.chat.service_values import Reply, Setting
from bridle.server.chatting.bearing import Bearing
from bridle.server.chatting.watching import Watching
from bridle.server.limits import Limits
from bridle.server.pages import Page

PAGE = Path(__file__).parent.parent / "chat_page"
LIMITS = Limits(
    chat_bytes=262_144,  # 10,000 characters, however they are written
    body_bytes=16_384,
    path_bytes=2_048,
    rate=30.0,
    burst=120,
    streams=1_000,
)


class ChatRoom:
    """One chat, who may come in, and who watches."""

    def __init__(self, app: ChatApp, bearing: Bearing, limits: Limits = LIMITS) -> None:
        self.app = app
        self.bearing = bearing
        self.limits = limits
        self.watching = Watching(app.database)
        self.page = Page(PAGE)
        self.stopping = False

    @property
    def has_tasks(self) -> bool:
        """Is it the task assistant, with a list beside it?"""
        return self.app.runner.profile.name == "tasks"

    async def reply(
        self,
        user: str,
        said: tuple[str, str | None],
        key: str,
        setting: Setting,
        tell: Tell | None = None,
    ) -> Reply:
        """Answer a message; who watches the user's list sees at once what came of it."""
        message, conversation = said
        try:
            return await self.app.service.reply(
                user, message, conversation, key=key, setting=setting, tell=tell
            )
        finally:
            self.watching.touched(user)

    def stop(self) -> None:
        """Take nothing new; streams end."""
        self.stopping = True
        self.watching.stop()
