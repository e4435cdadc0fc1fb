"""The program of an ACP agent: finding and starting it, its environment, and its failures.

Does not know the protocol that is spoken over its pipes.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bridle.errors import AgentError, ConfigError
from bridle.workspace.process.command import clean_environment
from bridle.workspace.process.supervised_process import SupervisedProcess
from bridle.workspace.programs import find_program
from bridle.workspace.text import shorten

LINE_LIMIT = 2**23  # bytes of one line: enough for a large picture or file, read within a second
_SHOWN = 600  # characters of stderr in a message

_COMMON = (  # where programs keep their settings, and how they reach the network
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)
_GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION")
_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")
_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")
_ANY = (*_GOOGLE, *_OPENAI, *_ANTHROPIC, "OPENROUTER_API_KEY")
_OWN: dict[str, tuple[str, ...]] = {  # an agent gets the keys of its own vendor, and no others
    "gemini": _GOOGLE,
    "codex-acp": (*_OPENAI, "CODEX_API_KEY", "CODEX_HOME"),
    "claude-agent-acp": (*_ANTHROPIC, "CLAUDE_CONFIG_DIR"),
    "qwen": _OPENAI,
    "vibe-acp": ("MISTRAL_API_KEY",),
    "opencode": _ANY,
    "goose": (*_ANY, "GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_HOST"),
}
_ASK_FIRST: dict[str, dict[str, str]] = {  # settings for those that do not ask by default
    "opencode": {
        "OPENCODE_PERMISSION": '{"edit":"ask","bash":"ask","webfetch":"ask","websearch":"ask",'
        '"external_directory":"ask"}'
    },
    "goose": {"GOOSE_MODE": "approve"},
}


def environment(
    program: str, given: Mapping[str, str], inherit: Sequence[str] = ()
) -> dict[str, str]:
    """Return the environment of the program: harmless variables, its vendor's, and the given."""
    name = program.rpartition("/")[2]
    names = (*_COMMON, *_OWN.get(name, ()), *inherit)
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    return {**clean_environment(), **inherited, **_ASK_FIRST.get(name, {}), **given}


async def start_program(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str]
) -> SupervisedProcess:
    """Start the program in that folder. Raise `ConfigError` if that cannot be done."""
    words = (_find(argv[0], cwd), *argv[1:])
    try:
        return await SupervisedProcess.start(
            words, cwd, environment, name=argv[0], line_limit=LINE_LIMIT
        )
    except (OSError, ValueError) as error:
        raise _cannot_start(argv[0], error) from error


def program_ended(name: str, how: str, complaint: str) -> AgentError:
    """Return the error for a program that ended, or fell silent, before its answer."""
    quote = f" It said: {shorten(complaint, _SHOWN)}" if complaint else ""
    return AgentError(
        "agent",
        f"The agent's program `{name}` {how} before its answer came.{quote}",
        hint="What it did until then is in the log. Send the prompt again to start it anew.",
    )


def _find(name: str, root: str) -> str:
    """Find the program. A name alone is never found in the workspace: a call may have put it there.

    Raise `ConfigError`.
    """
    if "/" in name:
        place = Path(root, name)
        if not place.exists():
            raise _not_found(name)
        if not place.is_file() or not os.access(place, os.X_OK):
            raise _cannot_start(name, PermissionError("it is not an executable file"))
        return name
    path = find_program(name, (root,))
    if path is None:
        raise _not_found(name)
    return path


def _not_found(name: str) -> ConfigError:
    return ConfigError(
        f"The agent's program `{name}` was not found; nothing was started.",
        hint=f"Install `{name}`, or give its whole path; `bridle doctor` shows what is usable.",
    )


def _cannot_start(name: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"The agent's program `{name}` cannot be started: {error}.",
        error,
        hint="Check the path, and whether the file is executable.",
    )
