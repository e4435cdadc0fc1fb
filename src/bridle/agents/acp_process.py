"""The program of an ACP agent: how it is found, what it is told of our environment, how it fails.

`start` runs it in the workspace, below a supervisor. Does not know the protocol that is spoken over
its pipes.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bridle.errors import AgentError, ConfigError
from bridle.workspace.lookup import find_program
from bridle.workspace.process.environment import clean_environment
from bridle.workspace.process.supervised import SupervisedProcess
from bridle.workspace.text import shorten

LIMIT = 2**23  # bytes of one line: a large picture, or a file; more would be read for a second
_SHOWN = 600  # characters of what it complained about

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


async def start(argv: Sequence[str], cwd: str, environment: Mapping[str, str]) -> SupervisedProcess:
    """Start the program in that folder. Raise `ConfigError` if that cannot be done."""
    words = (_found(argv[0], cwd), *argv[1:])
    try:
        return await SupervisedProcess.start(
            words, cwd, environment, name=argv[0], line_limit=LIMIT
        )
    except (OSError, ValueError) as error:
        raise unusable(argv[0], error) from error


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
