"""A session with an ACP agent: its program, one conversation with it, and one prompt at a time.

Starts the program when it is needed, initializes it, logs in, resumes or begins a conversation and
sets its mode. What happens between a prompt and its answer is in `turn`.
"""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from acp import PROTOCOL_VERSION, RequestError, schema
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from bridle.agents.acp.client import Host
from bridle.agents.acp.connection import AgentConnection
from bridle.agents.acp.program import start_program
from bridle.agents.acp.turn import Turn, flood_error
from bridle.agents.acp.updates import to_blocks, to_wire
from bridle.agents.session_history import (
    POSITION,
    earlier_history,
    history_position,
    missed_history,
    with_earlier_history,
    with_missed_history,
)
from bridle.distribution import version
from bridle.errors import AgentError, ConfigError
from bridle.messages import Part, Text
from bridle.policy import Mode
from bridle.protocols.agent import AgentResponse
from bridle.workspace.text import one_line, shorten

CANCEL_SECONDS = 2.0  # that an agent has to stop
_MOST_SYSTEM = 30_000  # characters of the person's standing instructions
_LOST = (
    "The agent's earlier conversation could not be resumed ({}). A new one was started, and it was "
    "told what the log has of what was said before."
)
_INSTRUCTIONS = "<instructions>\nThe person's standing instructions:\n\n{}\n</instructions>\n\n{}"
_PLAN = (
    "[This session is in plan mode: look around and write down a plan. Nothing can be changed "
    "until the person has agreed to it.]"
)
_STOP_REASONS = {
    "max_tokens": "The agent stopped: its reply reached its token limit.",
    "max_turn_requests": "The agent stopped: it reached its own limit of steps.",
    "cancelled": "The agent stopped the turn of its own accord.",
    "refusal": "The agent refused to continue.",
}
_AUTH_REQUIRED = -32000
_ASK_MODES = ("default", "ask", "approve", "manual", "always-ask", "always_ask", "read-only")
_PLAN_MODES = ("plan", "architect")
_KEY_LOGINS = ("key", "token", "env")  # in the name of a way to log in that needs no person

Model = TypeVar("Model", bound=BaseModel)


class Settings(Struct, frozen=True):
    """How the program is started and talked to. `seconds`: for each answer before a prompt."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    auth: str = ""
    seconds: float = 60.0

    @property
    def command_line(self) -> str:
        """The command as a person would type it."""
        return shlex.join(self.argv)


class Modes(Struct):
    """The modes that a conversation can be in. `option`: they are a setting of that name."""

    ids: tuple[str, ...] = ()
    current: str = ""
    option: str = ""

    @property
    def can_plan(self) -> bool:
        """Whether there is a mode in which the agent only plans."""
        return any(_normal(mode) in _PLAN_MODES for mode in self.ids)

    def set_current(self, mode: str) -> None:
        """Note that the agent is in this mode now."""
        self.current = mode

    def mode_for(self, mode: Mode) -> str:
        """Return the mode that fits ours, in which the agent plans or asks; empty if none does."""
        names = {_normal(name): name for name in self.ids}
        wishes = (*_PLAN_MODES, *_ASK_MODES) if mode == "plan" else _ASK_MODES
        return next((names[wish] for wish in map(_normal, wishes) if wish in names), "")


class OpenConversation(Struct):
    """A conversation that can be prompted. `lost`: why the one before could not be resumed."""

    id: str
    modes: Modes
    images: bool = False
    lost: str = ""


class AcpSession:
    """One program in one conversation."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection: AgentConnection | None = None
        self._opener: ConversationOpener | None = None
        self._conversation: OpenConversation | None = None
        self._turn: Turn | None = None
        self._is_new = False  # has the conversation had no prompt yet?
        self._stop = asyncio.Event()

    @property
    def is_alive(self) -> bool:
        """Whether its program runs."""
        return self._connection is not None and self._connection.process.is_alive

    @property
    def can_be_resumed(self) -> bool:
        """Whether its program can be ended without losing the conversation."""
        return not self.is_alive or (self._opener is not None and self._opener.can_resume)

    async def on_notification(self, method: str, params: Any) -> None:
        """Hand a notification to the turn; what comes between turns, or is replayed, is dropped."""
        if self._turn is not None:
            await self._turn.on_notification(method, params)

    async def on_request(self, method: str, params: Any) -> Any:
        """Have the turn answer a request; between turns it is refused."""
        if self._turn is None:
            raise RequestError(-32000, "no prompt is running")
        return await self._turn.on_request(method, params)

    async def prompt(self, prompt: str, host: Host) -> AgentResponse:
        """Run one prompt to its end. If the program fails it is ended, so the next prompt works."""
        try:
            return await self._run_until_stopped(asyncio.ensure_future(self._prompt(prompt, host)))
        except BaseException as error:
            refused = isinstance(error, AgentError) and isinstance(error.cause, RequestError)
            if not refused or self._conversation is None:
                await self._end_program()
            raise
        finally:
            self._stop.clear()

    async def cancel(self) -> None:
        """Ask the agent to stop."""
        self._stop.set()
        if self._turn is not None:
            self._turn.stopped.set()
        if self._connection is not None and self._conversation is not None:
            await self._connection.notify("session/cancel", {"sessionId": self._conversation.id})

    async def close(self) -> None:
        """End the program and everything it has started."""
        self._stop.set()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _run_until_stopped(self, running: "asyncio.Task[AgentResponse]") -> AgentResponse:
        """Await the prompt. Once it was asked to stop, it has a short time to do so."""
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({running, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await asyncio.wait({running}, timeout=CANCEL_SECONDS)
            if running.done():
                return running.result()
            raise AgentError(
                "agent",
                f"`{self._settings.argv[0]}` did not stop when it was asked to, and was ended.",
                hint="The session can continue: the agent is started anew with the next prompt.",
            )
        finally:
            stop.cancel()
            if not running.done():
                running.cancel()
                await asyncio.wait({running})

    async def _prompt(self, prompt: str, host: Host) -> AgentResponse:
        connection, conversation = await self._open(host)
        turn = self._turn = Turn(host, conversation.id, conversation.modes.set_current)
        if self._stop.is_set():
            turn.stopped.set()
        is_answered = False
        try:
            blocks = self._prompt_blocks(prompt, host, conversation)
            params = {"sessionId": conversation.id, "prompt": blocks}
            answer = await self._answer(connection, turn, params)
            is_answered = True
            await turn.wait_for_updates()
            await turn.tool_calls.settle()
            await turn.report_usage(answer)
            return self._response(turn, conversation, answer)
        finally:
            self._turn = None
            await turn.close()
            if is_answered or self._stop.is_set():  # it knows everything up to here
                self._is_new = False
                host.update_state(**{POSITION: history_position(host.session)})

    async def _answer(
        self, connection: AgentConnection, turn: Turn, params: Mapping[str, Any]
    ) -> schema.PromptResponse:
        asking = asyncio.ensure_future(connection.request("session/prompt", params))
        flooded = asyncio.ensure_future(turn.flooded.wait())
        try:
            ends = {asking, flooded, turn.worker}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if turn.worker.done():  # only if an update could not be handled
                turn.worker.result()
            if not asking.done():
                raise flood_error()
            return schema.PromptResponse.model_validate(asking.result())
        except RequestError as error:
            message = f"The agent could not answer: {error_text(error)}."
            hint = "The session can continue: send the prompt again."
            raise AgentError("agent", message, error, hint=hint) from error
        except ValidationError as error:
            message = "The agent ended the turn with something that is not an answer."
            hint = "What it did until then is in the log."
            raise AgentError("agent", message, error, hint=hint) from error
        finally:
            for task in (asking, flooded):
                task.cancel()
            await asyncio.wait({asking, flooded})

    async def _open(self, host: Host) -> tuple[AgentConnection, OpenConversation]:
        """Return the running program, in the conversation of the session, set to ask."""
        connection, conversation = self._connection, self._conversation
        known = host.session.claude_session_id or ""
        if connection is None or not connection.process.is_alive:
            await self._end_program()
            settings = self._settings
            process = await start_program(settings.argv, host.root, settings.environment)
            connection, conversation = AgentConnection(process, self), None
            self._connection = connection
            self._opener = ConversationOpener(connection, settings, host.root)
            await self._opener.initialize()
        if conversation is None or conversation.id != known:
            conversation = self._conversation = await self._open_conversation(host, known)
        seconds = self._settings.seconds
        if trouble := await set_mode(connection, conversation, host.session.mode, seconds):
            await host.notify("notice", trouble)
        return connection, conversation

    async def _open_conversation(self, host: Host, known: str) -> OpenConversation:
        """Resume the conversation or begin one. Its id is recorded at once."""
        assert self._opener is not None
        conversation = await self._opener.open(known)
        if conversation.lost:
            await host.notify("notice", _LOST.format(conversation.lost), lost=known)
        if conversation.id != known:
            self._is_new = True
            host.session.claude_session_id = conversation.id
            host.update_state(cost=None)
        return conversation

    def _prompt_blocks(
        self, prompt: str, host: Host, conversation: OpenConversation
    ) -> list[dict[str, Any]]:
        """Return the prompt, with its pictures if it is still the one that the person sent."""
        sent: tuple[Part, ...] = tuple(getattr(host.session, "prompt", ()) or ())
        text = "".join(part.text for part in sent if isinstance(part, Text))
        parts = sent if text and text.strip() == prompt.strip() else (Text(prompt),)
        blocks = to_blocks(parts, images=conversation.images)
        if introduction := self._introduction(host):
            blocks.insert(0, {"type": "text", "text": introduction})
        if host.session.mode == "plan" and not conversation.modes.can_plan:
            blocks.insert(0, {"type": "text", "text": _PLAN})
        return blocks

    def _introduction(self, host: Host) -> str:
        """Return what the agent has to know before the prompt.

        A new conversation gets the standing instructions and the session's history. Another agent
        may also have run turns since this one was last prompted.
        """
        session = host.session
        if not self._is_new:
            return with_missed_history(
                "", missed_history(session, host.state.get(POSITION))
            ).strip()
        history = with_earlier_history("", earlier_history(session))
        system = shorten(str(getattr(session, "system", "") or "").strip(), _MOST_SYSTEM)
        return (_INSTRUCTIONS.format(system, history) if system else history).strip()

    def _response(
        self, turn: Turn, conversation: OpenConversation, answer: schema.PromptResponse
    ) -> AgentResponse:
        failure = ""
        if answer.stop_reason != "end_turn" and not self._stop.is_set():
            failure = _STOP_REASONS.get(answer.stop_reason, "")
        return AgentResponse(
            content=failure or turn.text,
            session_id=conversation.id,
            cost=turn.cost,
            num_turns=turn.tool_calls.count + 1,
            tools_used=list(turn.tool_calls.used),
            is_error=bool(failure),
        )

    async def _end_program(self) -> None:
        """End the program. Its conversation may be resumed by another one."""
        connection, self._connection, self._conversation = self._connection, None, None
        if connection is not None:
            ending = asyncio.ensure_future(connection.close(at_once=True))
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                await ending
                raise


class ConversationOpener:
    """Makes the requests that come before the first prompt of a conversation."""

    def __init__(self, connection: AgentConnection, settings: Settings, root: str) -> None:
        self._connection = connection
        self._settings = settings
        self._root = root
        self._agent = schema.InitializeResponse(protocol_version=PROTOCOL_VERSION)

    @property
    def can_resume(self) -> bool:
        """Whether this agent can resume a conversation."""
        return self._resume_method() is not None

    async def initialize(self) -> None:
        """Exchange capabilities. Raise `AgentError` or `ConfigError`."""
        request = schema.InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=schema.ClientCapabilities(
                fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
                terminal=True,
            ),
            client_info=schema.Implementation(name="bridle", title="bridle", version=version()),
        )
        try:
            params = to_wire(request)
            self._agent = await self._request("initialize", params, schema.InitializeResponse)
        except RequestError as error:
            raise self._refusal("initialize", error) from error
        if self._agent.protocol_version != PROTOCOL_VERSION:
            raise ConfigError(
                f"`{self._settings.command_line}` speaks version {self._agent.protocol_version} "
                f"of the Agent Client Protocol, and bridle speaks version {PROTOCOL_VERSION}.",
                hint="Use a release of that agent that speaks the same version.",
            )

    async def open(self, known: str) -> OpenConversation:
        """Resume the conversation of that id, or begin one. Raise `AgentError`."""
        lost = ""
        if known:
            conversation, lost = await self._resume(known)
            if conversation is not None:
                return conversation
        return await self._begin(lost)

    async def _resume(self, known: str) -> tuple[OpenConversation | None, str]:
        """Return the conversation of that id, or why it cannot be resumed."""
        method = self._resume_method()
        if method is None:
            return None, "this agent cannot resume a conversation"
        params = {"sessionId": known, "cwd": self._root, "mcpServers": []}
        try:
            answer = await self._request_with_login(method, params, schema.LoadSessionResponse)
        except RequestError as error:
            return None, f"the agent says: {error_text(error)}"
        return self._to_conversation(known, answer), ""

    async def _begin(self, lost: str) -> OpenConversation:
        params = {"cwd": self._root, "mcpServers": []}
        try:
            answer = await self._request_with_login(
                "session/new", params, schema.NewSessionResponse
            )
        except RequestError as error:
            raise self._refusal("session/new", error) from error
        conversation = self._to_conversation(answer.session_id, answer)
        conversation.lost = lost
        return conversation

    def _resume_method(self) -> str | None:
        """Return the request that resumes a conversation, if possible one that replays nothing."""
        capabilities = self._agent.agent_capabilities or schema.AgentCapabilities()
        sessions = capabilities.session_capabilities
        if sessions is not None and sessions.resume is not None:
            return "session/resume"
        return "session/load" if capabilities.load_session else None

    async def _request_with_login(
        self, method: str, params: dict[str, Any], model: type[Model]
    ) -> Model:
        """Make a request; if the agent wants a login first, log in and make it again."""
        try:
            return await self._request(method, params, model)
        except RequestError as error:
            if error.code != _AUTH_REQUIRED:
                raise
            await self._log_in(error)
        return await self._request(method, params, model)

    async def _log_in(self, reason: RequestError) -> None:
        """Log in in a way that needs no person. Raise `ConfigError` if there is none."""
        methods = self._agent.auth_methods or []
        for method in methods:
            if not self._needs_no_person(method):
                continue
            try:
                params = {"methodId": method.id}
                await self._request("authenticate", params, schema.AuthenticateResponse)
                return
            except RequestError as error:
                reason = error
        raise self._login_needed(methods, reason)

    def _needs_no_person(self, method: Any) -> bool:
        """Whether we can log in this way by ourselves. The one the person chose is always tried."""
        if self._settings.auth:
            return bool(method.id == self._settings.auth)
        if isinstance(method, schema.EnvVarAuthMethod):
            needed = [variable.name for variable in method.vars if not variable.optional]
            return all(name in self._settings.environment for name in needed)
        if isinstance(method, schema.TerminalAuthMethod):
            return False
        name = _normal(f"{method.id} {method.name}")
        return any(word in name for word in _KEY_LOGINS)

    def _login_needed(self, methods: Sequence[Any], reason: RequestError) -> ConfigError:
        ways = "; ".join(_login_hint(self._settings, method) for method in methods[:6])
        program = self._settings.argv[0]
        return ConfigError(
            f"`{program}` wants a login first ({error_text(reason)}). Nothing was sent to it.",
            reason,
            hint=f"Ways to log in: {ways}."
            if ways
            else f"Run `{program}` by hand once and log in there, then send the prompt again.",
        )

    def _to_conversation(self, conversation_id: str, answer: Any) -> OpenConversation:
        capabilities = self._agent.agent_capabilities or schema.AgentCapabilities()
        prompts = capabilities.prompt_capabilities
        images = bool(prompts and prompts.image)
        return OpenConversation(conversation_id, offered_modes(answer), images)

    async def _request(self, method: str, params: Mapping[str, Any], model: type[Model]) -> Model:
        answer = await self._connection.request(method, params, self._settings.seconds)
        try:
            return model.model_validate(answer if isinstance(answer, dict) else {})
        except ValidationError as error:
            raise AgentError(
                "agent",
                f"`{self._settings.command_line}` answered `{method}` with something that is not "
                "an answer.",
                error,
                hint="It may speak another protocol than ACP: check the command and its flags.",
            ) from error

    def _refusal(self, method: str, error: RequestError) -> AgentError:
        message = f"`{self._settings.command_line}` refused `{method}`: {error_text(error)}."
        return AgentError("agent", message, error, hint="Run it by hand to see what it needs.")


async def set_mode(
    connection: AgentConnection, conversation: OpenConversation, mode: Mode, seconds: float
) -> str:
    """Set the agent to ask, or to plan, as our mode wants it. Return why not, if it cannot be."""
    modes = conversation.modes
    wish = modes.mode_for(mode)
    if not wish or wish == modes.current:
        return ""
    try:
        if modes.option:
            params = {"sessionId": conversation.id, "configId": modes.option, "value": wish}
            await connection.request("session/set_config_option", params, seconds)
        else:
            params = {"sessionId": conversation.id, "modeId": wish}
            await connection.request("session/set_mode", params, seconds)
    except RequestError as error:
        return f"the agent did not switch to its mode `{wish}`: {error_text(error)}"
    modes.current = wish
    return ""


def offered_modes(answer: Any) -> Modes:
    """Return the modes that an agent offers, whether as modes or as a setting."""
    modes = getattr(answer, "modes", None)
    if modes is not None and modes.available_modes:
        ids = tuple(mode.id for mode in modes.available_modes)
        return Modes(ids, modes.current_mode_id)
    for option in getattr(answer, "config_options", None) or ():
        if isinstance(option, schema.SessionConfigOptionSelect) and option.category == "mode":
            return Modes(_option_values(option.options), option.current_value, option.id)
    return Modes()


def _option_values(options: Sequence[Any]) -> tuple[str, ...]:
    """Return the values of a setting, also those in groups."""
    values: list[str] = []
    for option in options:
        inner = option.options if hasattr(option, "options") else [option]
        values += [value.value for value in inner]
    return tuple(values)


def _login_hint(settings: Settings, method: Any) -> str:
    name = one_line(f"{method.name} ({method.id})", 100)
    if isinstance(method, schema.EnvVarAuthMethod):
        variables = ", ".join(variable.name for variable in method.vars)
        return f"{name}: set {variables} in the agent's env"
    if isinstance(method, schema.TerminalAuthMethod):
        return f"{name}: run `{shlex.join([*settings.argv, *(method.args or [])])}` in a terminal"
    return (
        f"{name}: run `{settings.argv[0]}` by hand and log in, or choose it by auth={method.id!r}"
    )


def error_text(error: RequestError) -> str:
    """Return what the agent said, with the reason that some agents put into the data."""
    data = error.data if isinstance(error.data, dict) else {}
    more = data.get("details") or data.get("message") or ""
    return one_line(f"{error} {more}".strip(), 300)


def _normal(name: str) -> str:
    return name.casefold().rpartition("#")[2].replace("_", "-")
