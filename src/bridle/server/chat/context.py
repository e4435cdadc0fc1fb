"""What the chat's routes work with, all of it handed in."""

import html
from collections.abc import Callable
from pathlib import Path

from bridle.chat.app import ChatApp
from bridle.chat.values import Locale, Reply
from bridle.chat.worker import OnText
from bridle.errors import ConfigError
from bridle.server.chat.jwt import JwtVerifier
from bridle.server.chat.task_events import TaskStreams
from bridle.server.middleware import Limits
from bridle.server.page_files import Page, PageFile, page_file

PAGE = Path(__file__).parent.parent / "chat_page"
LIMITS = Limits(
    chat_bytes=262_144,  # 10,000 characters, however they are written
    body_bytes=16_384,
    path_bytes=2_048,
    rate=30.0,
    burst=120,
    streams=1_000,
)


_LETTER = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" \
fill="#41556b"/><text x="16" y="22.5" text-anchor="middle" font-family="system-ui, sans-serif" \
font-size="19" font-weight="600" fill="#fff">{letter}</text></svg>
"""


def logo_of(title: str, given: str | Path | None) -> PageFile:
    """The file of a logo, or the first letter of the title. Raise `ConfigError`."""
    if given is None:
        letter = html.escape(title.strip()[:1].upper() or "?")
        return page_file(_LETTER.format(letter=letter).encode(), "logo.svg")
    try:
        return page_file(Path(given).read_bytes(), Path(given).name)
    except (OSError, KeyError) as error:
        raise ConfigError(
            f"the logo {given} cannot be used", error, hint="It has to be an SVG or PNG file."
        ) from error


class ChatContext:
    """One chat, who may come in, and who watches."""

    def __init__(self, app: ChatApp, bearing: JwtVerifier, limits: Limits = LIMITS) -> None:
        self.app = app
        self.bearing = bearing
        self.limits = limits
        self.watching = TaskStreams(app.database)
        self.page = Page(PAGE)
        self.logo = logo_of(self.title, app.runner.profile.logo)
        self.stopping = False

    @property
    def title(self) -> str:
        """What the page calls the assistant."""
        profile = self.app.runner.profile
        return profile.title or profile.name.replace("_", " ").replace("-", " ").capitalize()

    @property
    def has_tasks(self) -> bool:
        """Is it the task assistant, with a list beside it?"""
        return self.app.runner.profile.name == "tasks"

    async def reply(
        self,
        user: str,
        message: str,
        conversation_id: str | None,
        *,
        key: str,
        locale: Locale,
        on_accepted: Callable[[], None] | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """Answer a message. Whoever watches the user's list sees the changes at once."""
        try:
            return await self.app.service.reply(
                user,
                message,
                conversation_id,
                key=key,
                locale=locale,
                on_accepted=on_accepted,
                on_text=on_text,
            )
        finally:
            self.watching.touched(user)

    def stop(self) -> None:
        """Take nothing new; streams end."""
        self.stopping = True
        self.watching.stop()
