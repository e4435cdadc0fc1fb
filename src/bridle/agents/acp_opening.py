"""How a conversation with an ACP agent is opened: hello, log in, begin or take up, set to ask.

Knows the requests that stand before the first prompt, and what each agent may answer. Does not know
what is said in the conversation.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from acp import PROTOCOL_VERSION, RequestError, schema
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from bridle.agents.acp_link import Link
from bridle.agents.acp_map import wire
from bridle.distribution import version
from bridle.errors import AgentError, ConfigError
from bridle.policy import Mode
from bridle.workspace.text import one_line

AUTH_REQUIRED = -32000
_ASKING = ("default", "ask", "approve", "manual", "always-ask", "always_ask", "read-only")
_PLANNING = ("plan", "architect")
_BY_KEY = ("key", "token", "env")  # in the name of a way to log in that takes no person
Model = TypeVar("Model", bound=BaseModel)


class Settings(Struct, frozen=True):
    """How the program is started and talked to."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    auth: str = ""
    seconds: float = 60.0  # for each answer before the first prompt

    @property
    def line(self) -> str:
        """The command, as a person would write it."""
        return shlex.join(self.argv)


class Modes(Struct):
    """The modes that a conversation can be in. `option`: they are a setting of that name."""

    ids: tuple[str, ...] = ()
    current: str = ""
    option: str = ""

    @property
    def plans(self) -> bool:
        """Is there one in which the agent only plans?"""
        return any(_flat(one) in _PLANNING for one in self.ids)

    def wanted(self, mode: Mode) -> str:
        """The mode that fits ours: one in which the agent asks, or plans; empty if none does."""
        names = {_flat(one): one for one in self.ids}
        wishes = (*_PLANNING, *_ASKING) if mode == "plan" else _ASKING
        return next((names[wish] for wish in map(_flat, wishes) if wish in names), "")


class Opened(Struct):
    """A conversation that can be prompted. `lost` says why the one before could not be taken up."""

    id: str
    modes: Modes
    images: bool = False
    lost: str = ""


class Opening:
    """Opens conversations with one program, which is greeted first."""

    def __init__(self, link: Link, settings: Settings, root: str) -> None:
        self._link = link
        self._settings = settings
        self._root = root
        self._hello = schema.InitializeResponse(protocol_version=PROTOCOL_VERSION)

    @property
    def can_take_up(self) -> bool:
        """Can this agent go on with a conversation of before?"""
        abilities = self._hello.agent_capabilities
        return abilities is not None and _way_back(abilities) is not None

    async def open(self, known: str) -> Opened:
        """Take up the conversation of that id, or begin one. Raise `AgentError`."""
        lost = ""
        if known:
            found, lost = await self.take_up(known)
            if found is not None:
                return found
        return await self.begin(lost)

    async def greet(self) -> None:
        """What each of us can do."""
        capabilities = schema.ClientCapabilities(
            fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
            terminal=True,
        )
        request = schema.InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=capabilities,
            client_info=schema.Implementation(name="bridle", title="bridle", version=version()),
        )
        try:
            self._hello = await self._ask("initialize", wire(request), schema.InitializeResponse)
        except RequestError as error:
            raise self._refused("initialize", error) from error
        if self._hello.protocol_version != PROTOCOL_VERSION:
            raise ConfigError(
                f"`{self._settings.line}` speaks version {self._hello.protocol_version} of the "
                f"Agent Client Protocol, and this is version {PROTOCOL_VERSION}.",
                hint="Use a release of that agent that speaks the same version.",
            )

    async def take_up(self, known: str) -> tuple[Opened | None, str]:
        """The conversation of that id, or why it cannot be had."""
        abilities = self._hello.agent_capabilities or schema.AgentCapabilities()
        params = {"sessionId": known, "cwd": self._root, "mcpServers": []}
        method = _way_back(abilities)
        if method is None:
            return None, "this agent cannot take up a conversation of before"
        try:
            found = await self._with_login(method, params, schema.LoadSessionResponse)
        except RequestError as error:
            return None, f"the agent says: {words_of(error)}"
        return self._opened(known, found), ""

    async def begin(self, lost: str = "") -> Opened:
        """A new conversation."""
        params = {"cwd": self._root, "mcpServers": []}
        try:
            found = await self._with_login("session/new", params, schema.NewSessionResponse)
        except RequestError as error:
            raise self._refused("session/new", error) from error
        opened = self._opened(found.session_id, found)
        opened.lost = lost
        return opened

    async def _with_login(self, method: str, params: dict[str, Any], model: type[Model]) -> Model:
        """Ask, and where the agent wants a login first, log in and ask again."""
        try:
            return await self._ask(method, params, model)
        except RequestError as error:
            if error.code != AUTH_REQUIRED:
                raise
            await self._log_in(error)
        return await self._ask(method, params, model)

    async def _log_in(self, why: RequestError) -> None:
        """With a way that needs nothing of a person. Raise `ConfigError` where there is none."""
        methods = self._hello.auth_methods or []
        for method in methods:
            if not self._is_quiet(method):
                continue
            try:
                params = {"methodId": method.id}
                await self._ask("authenticate", params, schema.AuthenticateResponse)
                return
            except RequestError as error:
                why = error
        raise self._locked_out(methods, why)

    def _is_quiet(self, method: Any) -> bool:
        """Does it take nothing of a person? The one that was chosen is taken at their word."""
        if self._settings.auth:
            return bool(method.id == self._settings.auth)
        if isinstance(method, schema.EnvVarAuthMethod):
            needed = [one.name for one in method.vars if not one.optional]
            return all(name in self._settings.environment for name in needed)
        if isinstance(method, schema.TerminalAuthMethod):
            return False
        words = _flat(f"{method.id} {method.name}")
        return any(one in words for one in _BY_KEY)

    def _locked_out(self, methods: Sequence[Any], why: RequestError) -> ConfigError:
        ways = "; ".join(_way(self._settings, one) for one in methods[:6])
        program = self._settings.argv[0]
        return ConfigError(
            f"`{program}` wants a login first ({words_of(why)}). Nothing was sent to it.",
            why,
            hint=f"Ways to log in: {ways}."
            if ways
            else f"Run `{program}` by hand once and log in there, then send the prompt again.",
        )

    def _opened(self, session_id: str, found: Any) -> Opened:
        prompts = (self._hello.agent_capabilities or schema.AgentCapabilities()).prompt_capabilities
        return Opened(session_id, modes_of(found), bool(prompts and prompts.image))

    async def _ask(self, method: str, params: Mapping[str, Any], model: type[Model]) -> Model:
        answer = await self._link.request(method, params, self._settings.seconds)
        try:
            return model.model_validate(answer if isinstance(answer, dict) else {})
        except ValidationError as error:
            words = f"`{self._settings.line}` answered `{method}` with something that is no answer."
            hint = "It may speak another protocol than ACP: check the command and its flags."
            raise AgentError("agent", words, error, hint=hint) from error

    def _refused(self, method: str, error: RequestError) -> AgentError:
        words = f"`{self._settings.line}` refused `{method}`: {words_of(error)}."
        return AgentError("agent", words, error, hint="Run it by hand to see what it is missing.")


async def set_mode(link: Link, opened: Opened, mode: Mode, seconds: float) -> str:
    """Have the agent ask, or plan, as our mode wants it; why not, where it cannot be had."""
    modes = opened.modes
    wish = modes.wanted(mode)
    if not wish or wish == modes.current:
        return ""
    try:
        if modes.option:
            params = {"sessionId": opened.id, "configId": modes.option, "value": wish}
            await link.request("session/set_config_option", params, seconds)
        else:
            params = {"sessionId": opened.id, "modeId": wish}
            await link.request("session/set_mode", params, seconds)
    except RequestError as error:
        return f"the agent did not go into its mode `{wish}`: {words_of(error)}"
    modes.current = wish
    return ""


def modes_of(found: Any) -> Modes:
    """The modes that an agent offers, as such or as a setting."""
    modes = getattr(found, "modes", None)
    if modes is not None and modes.available_modes:
        ids = tuple(one.id for one in modes.available_modes)
        return Modes(ids, modes.current_mode_id)
    for option in getattr(found, "config_options", None) or ():
        if isinstance(option, schema.SessionConfigOptionSelect) and option.category == "mode":
            return Modes(_values(option.options), option.current_value, option.id)
    return Modes()


def _way_back(abilities: schema.AgentCapabilities) -> str | None:
    """The request that takes up a conversation; the one that replays nothing comes first."""
    sessions = abilities.session_capabilities
    if sessions is not None and sessions.resume is not None:
        return "session/resume"
    return "session/load" if abilities.load_session else None


def _values(options: Sequence[Any]) -> tuple[str, ...]:
    flat: list[str] = []
    for one in options:
        flat += [inner.value for inner in one.options] if hasattr(one, "options") else [one.value]
    return tuple(flat)


def _way(settings: Settings, method: Any) -> str:
    """A way to log in, as an instruction."""
    name = one_line(f"{method.name} ({method.id})", 100)
    if isinstance(method, schema.EnvVarAuthMethod):
        return f"{name}: set {', '.join(one.name for one in method.vars)} in the agent's env"
    if isinstance(method, schema.TerminalAuthMethod):
        return f"{name}: run `{shlex.join([*settings.argv, *(method.args or [])])}` in a terminal"
    return (
        f"{name}: run `{settings.argv[0]}` by hand and log in, or choose it by auth={method.id!r}"
    )


def words_of(error: RequestError) -> str:
    """What the agent said, with the reason that some hide in the data."""
    data = error.data if isinstance(error.data, dict) else {}
    more = data.get("details") or data.get("message") or ""
    return one_line(f"{error} {more}".strip(), 300)


def _flat(word: str) -> str:
    return word.casefold().rpartition("#")[2].replace("_", "-")
