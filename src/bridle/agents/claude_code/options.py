"""What the `claude` program is started with: its options, its command line and its environment.

`ClaudeCodeConfig` and the session decide. Starts nothing.
"""

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from bridle.agents.claude_code.process import find_program
from bridle.distribution import install_hint
from bridle.errors import ConfigError, MissingExtra
from bridle.workspace import programs
from bridle.workspace.process.command import clean_environment
from bridle.workspace.text import shorten

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

INSTALL = f"{install_hint('claude')}; `bridle doctor` shows what is usable."
TOOLS = (
    *("Bash", "Read", "Edit", "Write", "NotebookEdit", "Glob", "Grep", "WebFetch", "WebSearch"),
    *("TodoWrite", "AskUserQuestion", "Task", "ExitPlanMode"),
)
_MOST_SYSTEM = 30_000  # characters: it is one argument of a command line, which has a limit
_WEEK = 604_800.0  # seconds: a person is asked in a hook, and may be away
_PLAN = Path(__file__).with_name("plan.md")
_SHELL = Path(__file__).with_name("shell.sh")
_PREFIXES = ("ANTHROPIC_", "CLAUDE_")
_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_",),
    "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_", "GCLOUD_", "CLOUD_ML_", "VERTEX_"),
    "CLAUDE_CODE_USE_FOUNDRY": ("AZURE_",),
}
_NAMES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "NODE_EXTRA_CA_CERTS"),
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
)
_OUTER = ("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_CHILD_SESSION")
_FIXED = {
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
    "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1",  # a command is judged where it runs
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # what a turn starts ends with it
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}
_SETTINGS = '{"useAutoModeDuringPlan": false}'  # else a model would decide, and not the gate


class ClaudeCodeConfig(Struct, frozen=True):
    """How Claude Code is run. What is not set, the program decides.

    `system_prompt` is added to the program's own. `tools` are offered to the model; `allowed_tools`
    are passed on as they are, and go through the gate like all others; `disallowed_tools` are not
    offered. `setting_sources` names the settings files that are read: none by default, because a
    repository's own could run code and allow tools. `env` is added to the program's environment,
    which is a short list of ours; only the program gets `api_key`. A transient error is retried
    once, after `retry_seconds`; before that, the program itself retries `program_retries` times.
    `hook_seconds` is how long a person may take to answer.
    """

    model: str | None = None
    system_prompt: str = ""
    max_turns: int | None = None
    tools: tuple[str, ...] = TOOLS
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    setting_sources: tuple[Literal["user", "project", "local"], ...] = ()
    mcp_servers: Mapping[str, Any] = {}
    cli_path: str = ""
    env: Mapping[str, str] = {}
    api_key: str = ""
    retry_seconds: float = 2.0
    program_retries: int = 0
    hook_seconds: float = _WEEK

    def __repr__(self) -> str:
        return f"ClaudeCodeConfig(model={self.model!r}, cli_path={self.cli_path!r})"


def build_options(config: ClaudeCodeConfig, session: Any, resume: str | None) -> dict[str, Any]:
    """Return the options that the config and the session decide, by the SDK's names."""
    remaining = getattr(session, "remaining", None)
    planning = getattr(session, "mode", "") == "plan"
    return {
        "cwd": session.working_directory,
        "model": config.model,
        "max_turns": _least(config.max_turns, getattr(remaining, "steps", None)),
        "max_budget_usd": getattr(remaining, "money", None),
        "system_prompt": _system(config, session, planning),
        "tools": list(config.tools),
        "allowed_tools": list(config.allowed_tools),
        "disallowed_tools": list(config.disallowed_tools),
        "setting_sources": list(config.setting_sources),
        "settings": _SETTINGS,
        "mcp_servers": dict(config.mcp_servers),
        "strict_mcp_config": True,
        "permission_mode": "plan" if planning else "default",
        "resume": resume,
        "include_partial_messages": True,
        "verbatim_prompts": True,  # `@path` in a prompt would be read without the gate
    }


def _least(*limits: int | None) -> int | None:
    given = [limit for limit in limits if limit is not None]
    return max(1, min(given)) if given else None


def _system(config: ClaudeCodeConfig, session: Any, planning: bool) -> dict[str, str]:
    plan = _PLAN.read_text("utf-8") if planning else ""
    parts = [config.system_prompt, str(getattr(session, "system", "") or ""), plan]
    text = shorten("\n\n".join(part.strip() for part in parts if part.strip()), _MOST_SYSTEM)
    return {"type": "preset", "preset": "claude_code", **({"append": text} if text else {})}


def environment(config: ClaudeCodeConfig, cwd: str) -> dict[str, str]:
    """Return the program's environment: what any command gets, and what it needs to sign in."""
    flags = {**os.environ, **config.env}
    clouds = tuple(name for flag, names in _CLOUDS.items() if flags.get(flag) for name in names)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if (name in _NAMES or name.startswith(_PREFIXES + clouds)) and name not in _OUTER
    }
    fixed = {**_FIXED, "CLAUDE_CODE_MAX_RETRIES": str(config.program_retries), "PWD": cwd}
    if os.access(_SHELL, os.X_OK):
        fixed["CLAUDE_CODE_SHELL_PREFIX"] = str(_SHELL)
    key = {"ANTHROPIC_API_KEY": config.api_key} if config.api_key else {}
    return {**clean_environment((cwd,)), **inherited, **fixed, **config.env, **key}


def config_folder(env: Mapping[str, str]) -> str:
    """Return the folder in which the program keeps its own files."""
    return env.get("CLAUDE_CONFIG_DIR") or f"{env.get('HOME', '')}/.claude"


def load_sdk() -> Any:
    """Import the SDK, which takes a second. Raise `MissingExtra`."""
    try:
        import claude_agent_sdk
    except ImportError as error:
        message = f"Claude Code cannot be used here: {error}; nothing was started."
        raise MissingExtra(message, error, hint=INSTALL) from error
    logger = logging.getLogger("claude_agent_sdk")
    if not logger.handlers:  # without one, Python would write its messages to the terminal
        logger.addHandler(logging.NullHandler())
    return claude_agent_sdk


def find_cli(config: ClaudeCodeConfig, root: str) -> str:
    """Return the program: the one that is named, the one that the SDK brings, or one on the PATH.

    Never one from the workspace: a call may have put it there. Raise `ConfigError`.
    """
    name = config.cli_path
    path: str | None
    if "/" in name:
        path = name if os.access(name, os.X_OK) else None
    else:
        path = programs.find_program(name, (root,)) if name else find_program((root,))
    if path is None:
        message = f"The program `{name or 'claude'}` was not found, or cannot be run"
        raise ConfigError(f"{message}; nothing was started.", hint=INSTALL)
    return path


def command_line(options: "ClaudeAgentOptions") -> list[str]:
    """Return the command line with which the SDK would start the program."""
    from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

    return SubprocessCLITransport("", options)._build_command()


@contextmanager
def private_servers(options: "ClaudeAgentOptions") -> Iterator[Any]:
    """Yield the MCP servers as the command line names them: by a private file of ours.

    Everybody on the machine can read a command line, and the servers' settings may hold keys.
    Servers inside this process need no file.
    """
    servers = options.mcp_servers
    inside = isinstance(servers, dict) and any(
        server.get("type") == "sdk" for server in servers.values()
    )
    if not servers or inside or not isinstance(servers, dict):
        yield servers
        return
    with tempfile.NamedTemporaryFile("wb", suffix=".json") as file:
        file.write(msgspec.json.encode({"mcpServers": servers}))
        file.flush()
        yield file.name
