"""The program of another agent: started in the workspace, and ended with everybody it started.

It runs below a supervisor, so that nobody is left of it when bridle itself is killed either.
Knows a command line and an environment. Does not know the protocol that is spoken over its pipes.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bridle.errors import AgentError, ConfigError
from bridle.tools.family import Family
from bridle.tools.process import clean_environment
from bridle.workspace.lookup import find_program
from bridle.workspace.sandbox import supervised
from bridle.workspace.text import neutral, shorten

LIMIT = 2**23  # bytes of one line: a large picture, or a file; more would be read for a second
GRACE = 0.5  # seconds between one way of asking it to end and the next
_END = 5.0  # seconds that a supervisor has for ending everybody
_GLANCE = 0.01  # seconds between one look at who is still there and the next
_STDERR = 8192  # bytes of what it complained about last
_SHOWN = 600  # characters of that in a message


_ALSO = (  # where programs keep their settings, and how they reach the network
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)
_GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION")
_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")
_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")
_ANY = (*_GOOGLE, *_OPENAI, *_ANTHROPIC, "OPENROUTER_API_KEY")
_OWN: dict[str, tuple[str, ...]] = {  # an agent is told the keys that are its own, and no others
    "gemini": _GOOGLE,
    "codex-acp": (*_OPENAI, "CODEX_API_KEY", "CODEX_HOME"),
    "claude-agent-acp": (*_ANTHROPIC, "CLAUDE_CONFIG_DIR"),
    "qwen": _OPENAI,
    "vibe-acp": ("MISTRAL_API_KEY",),
    "opencode": _ANY,
    "goose": (*_ANY, "GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_HOST"),
}

_ASKING: dict[str, dict[str, str]] = {  # how those are set to ask that do not by themselves
    "opencode": {
        "OPENCODE_PERMISSION": '{"edit":"ask","bash":"ask","webfetch":"ask","websearch":"ask",'
        '"external_directory":"ask"}'
    },
    "goose": {"GOOSE_MODE": "approve"},
}


def environment(
    program: str, given: Mapping[str, str], inherit: Sequence[str] = ()
) -> dict[str, str]:
    """What a program is told of ours: harmless names, its own keys, what is inherited or given."""
    known = program.rpartition("/")[2]
    names = (*_ALSO, *_OWN.get(known, ()), *inherit)
    taken = {name: os.environ[name] for name in names if name in os.environ}
    return {**clean_environment(), **taken, **_ASKING.get(known, {}), **given}


def missing(name: str) -> ConfigError:
    """The error for a program that is not there."""
    hint = f"Install `{name}`, or give the whole path of it; `bridle doctor` shows what is usable."
    return ConfigError(
        f"The agent's program `{name}` was not found; nothing was started.", hint=hint
    )


def unusable(name: str, error: Exception) -> ConfigError:
    """The error for a program that is there, and cannot be run."""
    words = f"The agent's program `{name}` cannot be started: {error}."
    return ConfigError(words, error, hint="Check the path, and whether it may run.")


class _Kin(Family):
    """Everybody that the program has started."""

    __slots__ = ()

    async def gone(self) -> None:
        """Killed, and no longer there: who was killed is there for a moment longer."""
        until = asyncio.get_running_loop().time() + GRACE
        self.end(thorough=True)
        while self._look(0) and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(_GLANCE)
            self.end(thorough=True)


class AgentProcess:
    """One running program, with its pipes. `start` makes it, `end` leaves nothing of it."""

    def __init__(
        self, process: asyncio.subprocess.Process, family: _Kin, name: str, lifeline: int
    ) -> None:
        self._process = process
        self._family = family
        self.name = name
        self._lifeline = lifeline
        self._stderr = bytearray()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(
        cls, argv: Sequence[str], cwd: str, environment: Mapping[str, str]
    ) -> "AgentProcess":
        """Start it in a group of its own. Raise `ConfigError` where that cannot be done."""
        family, words = _Kin(), (_found(argv[0], cwd), *argv[1:])
        theirs, lifeline = os.pipe()
        try:
            start = supervised(words, theirs)
            process = await asyncio.create_subprocess_exec(
                *start.argv,
                cwd=cwd,
                env=family.marked(environment),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                pass_fds=start.handles,
                limit=LIMIT,
            )
        except BaseException as error:
            os.close(lifeline)
            if isinstance(error, OSError | ValueError):
                raise unusable(argv[0], error) from error
            raise
        finally:
            os.close(theirs)
        family.lead(process.pid)
        return cls(process, family, argv[0], lifeline)

    @property
    def reader(self) -> asyncio.StreamReader:
        """What it says."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def writer(self) -> asyncio.StreamWriter:
        """Where it is spoken to."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def pid(self) -> int:
        """The number of its supervisor."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Has it not ended?"""
        return self._process.returncode is None

    def complaint(self) -> str:
        """What it said on stderr last, made harmless and short."""
        text = neutral(bytes(self._stderr).decode("utf-8", "replace")).strip()
        return text if len(text) <= _SHOWN else "… " + text[-_SHOWN:]

    async def ended(self) -> str:
        """How it ended, in words, once it has; what it complained about is there then."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), GRACE)
            await asyncio.wait_for(asyncio.shield(self._listening), GRACE)
        code = self._process.returncode
        if code is None:
            return "stopped speaking"
        if code < 0:
            return f"was ended by signal {-code}"
        return f"ended with exit code {code}"

    async def end(self, *, at_once: bool = False) -> None:
        """End it and everybody it started; asked first, unless it had its chance."""
        try:
            if not at_once:
                await self._closed()
            if self.is_alive:
                with suppress(OSError):
                    os.write(self._lifeline, b"T")
                await self._gone()
        finally:
            self._let_go()  # the supervisor ends everybody, also those who left the group
            await self._gone(_END)
            if self.is_alive:  # a supervisor that was stopped by somebody
                self._process.kill()
            await self._family.gone()
            await self._released()

    async def _closed(self) -> None:
        """The end of its input is the polite way of asking."""
        with suppress(OSError, RuntimeError):
            self.writer.close()
        await self._gone()

    async def _gone(self, seconds: float = GRACE) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)

    def _let_go(self) -> None:
        handle, self._lifeline = self._lifeline, -1
        if handle >= 0:
            os.close(handle)

    async def _released(self) -> None:
        """Pipes closed, nobody listening."""
        await self._process.wait()
        self._listening.cancel()
        with suppress(asyncio.CancelledError):
            await self._listening
        with suppress(OSError, RuntimeError):
            self.writer.close()
            await self.writer.wait_closed()
        transport = getattr(self._process, "_transport", None)
        if transport is not None:  # a reader that was stopped in the middle keeps its pipe open
            transport.close()
        await asyncio.sleep(0)

    async def _listen(self) -> None:
        """What it says on stderr, of which the end is kept."""
        assert self._process.stderr is not None
        with suppress(OSError):
            while data := await self._process.stderr.read(4096):
                self._stderr += data
                del self._stderr[:-_STDERR]


def _found(name: str, root: str) -> str:
    """The program's path; a name alone is never found in the workspace, where anybody may write."""
    if "/" in name:
        place = Path(root, name)
        if not place.exists():
            raise missing(name)
        if not place.is_file() or not os.access(place, os.X_OK):
            raise unusable(name, PermissionError("it is no program that may be run"))
        return name
    found = find_program(name, (root,))
    if found is None:
        raise missing(name)
    return found


def died(process_name: str, how: str, complaint: str) -> AgentError:
    """The error for a program that ended, or fell silent, before its answer."""
    said = f" It said: {shorten(complaint, _SHOWN)}" if complaint else ""
    return AgentError(
        "agent",
        f"The agent's program `{process_name}` {how} before its answer came.{said}",
        hint="What was done until then is in the log. Send the prompt again: it is started anew.",
    )
