"""A conversation with an ACP agent: its program, taken up or begun, and one prompt after another.

Knows when the program is started and ended. What is said in a turn is in acp_turn.py.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from acp import RequestError, schema
from pydantic import ValidationError

from bridle.agents.acp_link import Link
from bridle.agents.acp_map import blocks_of
from bridle.agents.acp_opening import Opened, Opening, Settings, set_mode, words_of
from bridle.agents.acp_process import environment, start
from bridle.agents.acp_reins import Reins
from bridle.agents.acp_turn import Turn, flood
from bridle.agents.past import KNOWN, mark, missed, past_of, with_missed, with_past
from bridle.errors import AgentError
from bridle.messages import Part, Text
from bridle.promises.agent import AgentResponse
from bridle.workspace.text import shorten

PATIENCE = 2.0  # seconds that an agent has for stopping
_STALE = (
    "The agent's conversation of before could not be taken up ({}). A new one was begun, which was "
    "told what the log has of what was said before."
)
_INSTRUCTIONS = "<instructions>\nThe person's standing instructions:\n\n{}\n</instructions>\n\n{}"
_MOST_SYSTEM = 30_000  # characters of those
_PLAN = (
    "[This session is in plan mode: look around and write down a plan. Nothing can be changed "
    "until the person has agreed to it.]"
)
_ENDS = {
    "max_tokens": "The agent stopped: its reply reached its limit of tokens.",
    "max_turn_requests": "The agent stopped: it reached its own limit of steps.",
    "cancelled": "The agent stopped the turn of its own accord.",
    "refusal": "The agent refused to go on.",
}


class Conversation:
    """One program, in one conversation."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._link: Link | None = None
        self._opening: Opening | None = None
        self._opened: Opened | None = None
        self._turn: Turn | None = None
        self._is_new = False  # was nothing said in it yet?
        self._stop = asyncio.Event()

    @property
    def is_alive(self) -> bool:
        """Can it be prompted again?"""
        return self._link is not None and self._link.process.is_alive

    @property
    def can_be_left(self) -> bool:
        """Can its program be ended without the conversation being lost?"""
        return not self.is_alive or (self._opening is not None and self._opening.can_take_up)

    async def told(self, method: str, params: Any) -> None:
        """A notification; what is said between turns, or replayed, is nobody's."""
        if self._turn is not None:
            await self._turn.told(method, params)

    async def asked(self, method: str, params: Any) -> Any:
        """A request; there is no work for it between turns."""
        if self._turn is None:
            raise RequestError(-32000, "there is no prompt under way")
        return await self._turn.asked(method, params)

    async def prompt(self, prompt: str, reins: Reins) -> AgentResponse:
        """One prompt, to its end. Where the program fails it is ended: the next prompt works."""
        try:
            running = asyncio.ensure_future(self._prompt(prompt, reins))
            return await self._until_stopped(running)
        except BaseException as error:
            refused = isinstance(error, AgentError) and isinstance(error.cause, RequestError)
            if not refused or self._opened is None:
                await self._end()
            raise
        finally:
            self._stop.clear()

    async def cancel(self) -> None:
        """The agent is asked to stop."""
        self._stop.set()
        if self._turn is not None:
            self._turn.stopped.set()
        if self._link is not None and self._opened is not None:
            await self._link.notify("session/cancel", {"sessionId": self._opened.id})

    async def close(self) -> None:
        """Leave nothing behind."""
        self._stop.set()
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def _until_stopped(self, running: "asyncio.Task[AgentResponse]") -> AgentResponse:
        """What comes of it; once it is to stop, it has a short time to do so."""
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({running, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await asyncio.wait({running}, timeout=PATIENCE)
            if running.done():
                return running.result()
            raise AgentError(
                "agent",
                f"`{self._settings.argv[0]}` did not stop when it was asked to, and was ended.",
                hint="The session can go on: the agent is started anew with the next prompt.",
            )
        finally:
            stop.cancel()
            if not running.done():
                running.cancel()
                await asyncio.wait({running})

    async def _prompt(self, prompt: str, reins: Reins) -> AgentResponse:
        link, opened = await self._ready(reins)
        turn = self._turn = Turn(reins, opened)
        if self._stop.is_set():
            turn.stopped.set()
        heard = False
        try:
            blocks = self._blocks(prompt, reins, opened)
            params = {"sessionId": opened.id, "prompt": blocks}
            answer = await self._answered(link, turn, params)
            heard = True
            await turn.caught_up()
            await turn.tools.settle()
            await turn.used(answer)
            return self._response(turn, opened, answer)
        finally:
            self._turn = None
            await turn.close()
            if heard or self._stop.is_set():  # it has been told what there was to tell
                self._is_new = False
                reins.keep(**{KNOWN: mark(reins.session)})

    async def _answered(
        self, link: Link, turn: Turn, params: Mapping[str, Any]
    ) -> schema.PromptResponse:
        asking = asyncio.ensure_future(link.request("session/prompt", params))
        flooded = asyncio.ensure_future(turn.flooded.wait())
        try:
            ends = {asking, flooded, turn.broken}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if turn.broken.done():
                turn.broken.result()
            if not asking.done():
                raise flood()
            return schema.PromptResponse.model_validate(asking.result())
        except RequestError as error:
            words = f"The agent could not answer: {words_of(error)}."
            hint = "The session can go on: send the prompt again."
            raise AgentError("agent", words, error, hint=hint) from error
        except ValidationError as error:
            words = "The agent ended the turn with something that is no answer."
            hint = "What it did until then is in the log."
            raise AgentError("agent", words, error, hint=hint) from error
        finally:
            for one in (asking, flooded):
                one.cancel()
            await asyncio.wait({asking, flooded})

    async def _ready(self, reins: Reins) -> tuple[Link, Opened]:
        """The program, running, in the conversation of the session, and set to ask."""
        link, opened = self._link, self._opened
        known = reins.session.claude_session_id or ""
        if link is None or not link.process.is_alive:
            await self._end()
            process = await start(self._settings.argv, reins.root, self._settings.environment)
            link, opened = Link(process, self), None
            self._link, self._opening = link, Opening(link, self._settings, reins.root)
            await self._opening.greet()
        if opened is None or opened.id != known:
            opened = self._opened = await self._open(reins, known)
        why = await set_mode(link, opened, reins.session.mode, self._settings.seconds)
        if why:
            await reins.tell("notice", why)
        return link, opened

    async def _open(self, reins: Reins, known: str) -> Opened:
        """Take up the conversation, or begin one; which one it is stands in the log at once."""
        assert self._opening is not None
        opened = await self._opening.open(known)
        if opened.lost:
            await reins.tell("notice", _STALE.format(opened.lost), lost=known)
        if opened.id != known:
            self._is_new = True
            reins.session.claude_session_id = opened.id
            reins.keep(cost=None)
        return opened

    def _blocks(self, prompt: str, reins: Reins, opened: Opened) -> list[dict[str, Any]]:
        """The prompt with its pictures, where it is still the one that was sent."""
        sent: tuple[Part, ...] = tuple(getattr(reins.session, "prompt", ()) or ())
        words = "".join(part.text for part in sent if isinstance(part, Text))
        parts = sent if words and words.strip() == prompt.strip() else (Text(prompt),)
        blocks = blocks_of(parts, images=opened.images)
        if told := self._told(reins):
            blocks.insert(0, {"type": "text", "text": told})
        if reins.session.mode == "plan" and not opened.modes.plans:
            blocks.insert(0, {"type": "text", "text": _PLAN})
        return blocks

    def _told(self, reins: Reins) -> str:
        """What comes before the prompt: instructions, where the conversation is new, and the past.

        Others may have carried the session before it began, or since it was last heard.
        """
        session = reins.session
        if not self._is_new:
            return with_missed("", missed(session, reins.state.get(KNOWN))).strip()
        past = with_past("", past_of(session))
        system = shorten(str(getattr(session, "system", "") or "").strip(), _MOST_SYSTEM)
        return (_INSTRUCTIONS.format(system, past) if system else past).strip()

    def _response(self, turn: Turn, opened: Opened, answer: schema.PromptResponse) -> AgentResponse:
        content, failed = turn.text, ""
        if answer.stop_reason != "end_turn" and not self._stop.is_set():
            failed = _ENDS.get(answer.stop_reason, "")
        return AgentResponse(
            failed or content,
            session_id=opened.id,
            cost=turn.cost,
            num_turns=turn.tools.rounds + 1,
            tools_used=list(turn.tools.used),
            is_error=bool(failed),
        )

    async def _end(self) -> None:
        """The program is ended; the conversation may be taken up by another one."""
        link, self._link, self._opened = self._link, None, None
        if link is not None:
            ending = asyncio.ensure_future(link.close(at_once=True))
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                await ending
                raise


def settings_of(
    argv: Sequence[str], env: Mapping[str, str], inherit: Sequence[str], auth: str, seconds: float
) -> Settings:
    """How the program is started, with the environment as it is now."""
    return Settings(tuple(argv), environment(argv[0], env, inherit), auth, seconds)
