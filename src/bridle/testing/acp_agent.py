"""An ACP agent that does as it is told: `python -m bridle.testing.acp_agent SCRIPT.json`.

For tests of whatever speaks to such agents. Written with the official library, and knows nothing of
the rest of bridle. The script says what the agent can do and what it does with each prompt:

    {"agent": {"load": true, "modes": ["auto", "default"], "remember": "sessions.json"},
     "turns": [[{"say": "Hello"}, {"ask": {"kind": "execute", "input": {"command": "ls"}},
                                   "then": [{"say": "ran"}], "else": [{"say": "did not"}]}]]}

A step is one of: say, think, plan, call, update, ask (then, else), read, write, run, put (writes a
file itself), prompt (says back what it was sent), usage, mode, commands, notify, start (a program),
wait (for a cancel), sleep, die, fail, end (the stop reason), tokens. `{result}` in a text is what
the last read, run or ask came to. `prompts` has steps by a word that the prompt holds, the last of
several; else the next turn is played. Without a turn left it says "Done.".
"""

import asyncio
import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import acp
from acp import RequestError, schema

_OPTIONS = (
    {"id": "yes-always", "kind": "allow_always"},
    {"id": "yes", "kind": "allow_once"},
    {"id": "no", "kind": "reject_once"},
)


class ScriptedAgent:
    """Plays one script."""

    def __init__(self, script: dict[str, Any]) -> None:
        self._can: dict[str, Any] = script.get("agent", {})
        self._turns: list[list[dict[str, Any]]] = script.get("turns", [])
        self._prompts: dict[str, list[dict[str, Any]]] = script.get("prompts", {})
        self._sessions: dict[str, int] = self._remembered()
        self._told: dict[str, asyncio.Event] = {}
        self._in = not self._can.get("login")
        self._result = ""
        self._stop: Any = "end_turn"
        self._tokens: dict[str, int] | None = None
        self._client: acp.Client | None = None

    def on_connect(self, conn: acp.Client) -> None:
        """Who is spoken to."""
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **kwargs: Any,
    ) -> schema.InitializeResponse:
        """What it can do."""
        if "hello" in self._can:
            await asyncio.sleep(self._can["hello"])
        abilities = {
            "loadSession": bool(self._can.get("load")),
            "promptCapabilities": {"image": bool(self._can.get("images"))},
            "sessionCapabilities": {"resume": {}} if self._can.get("resume") else {},
        }
        return schema.InitializeResponse(
            protocol_version=self._can.get("version", 1),
            agent_capabilities=schema.AgentCapabilities.model_validate(abilities),
            auth_methods=self._can.get("methods", []),
            agent_info=schema.Implementation(name="scripted", version="1"),
        )

    async def authenticate(self, method_id: str, **kwargs: Any) -> schema.AuthenticateResponse:
        """With the method of the script."""
        if method_id != self._can.get("login"):
            raise RequestError(-32603, f"{method_id} does not work")
        self._in = True
        return schema.AuthenticateResponse()

    async def new_session(self, cwd: str, **kwargs: Any) -> schema.NewSessionResponse:
        """A new conversation."""
        self._check()
        name = f"scripted-{os.getpid()}-{len(self._sessions) + 1}"
        self._sessions[name] = 0
        self._remember()
        return schema.NewSessionResponse.model_validate({"sessionId": name, **self._modes()})

    async def load_session(
        self, cwd: str, session_id: str, **kwargs: Any
    ) -> schema.LoadSessionResponse:
        """One of before, with everything that was said in it."""
        self._known(session_id)
        await self._update(session_id, "user_message_chunk", content=_text("replayed prompt"))
        await self._update(session_id, "agent_message_chunk", content=_text("replayed reply"))
        return schema.LoadSessionResponse.model_validate(self._modes())

    async def resume_session(
        self, session_id: str, cwd: str, **kwargs: Any
    ) -> schema.ResumeSessionResponse:
        """One of before."""
        self._known(session_id)
        return schema.ResumeSessionResponse.model_validate(self._modes())

    async def set_session_mode(
        self, session_id: str, mode_id: str, **kwargs: Any
    ) -> schema.SetSessionModeResponse:
        """Another mode."""
        self._can["mode"] = mode_id
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> schema.SetSessionConfigOptionResponse:
        """Another mode, as a setting."""
        self._can["mode"] = value
        return schema.SetSessionConfigOptionResponse(config_options=[])

    async def prompt(
        self, session_id: str, prompt: list[Any], **kwargs: Any
    ) -> schema.PromptResponse:
        """The next turn of the script."""
        self._check()
        number = self._sessions.get(session_id, 0)
        self._sessions[session_id] = number + 1
        self._remember()
        self._told[session_id] = asyncio.Event()
        self._stop, self._tokens = "end_turn", None
        words = "".join(
            one.text if isinstance(one, schema.TextContentBlock) else f"<{one.type}>"
            for one in prompt
        )
        await self._play(session_id, self._steps(words, number), words)
        usage = schema.Usage.model_validate(self._tokens) if self._tokens else None
        return schema.PromptResponse(stop_reason=self._stop, usage=usage)

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """Stop, if it listens."""
        if session_id in self._told and not self._can.get("deaf"):
            self._told[session_id].set()

    def _steps(self, words: str, number: int) -> list[dict[str, Any]]:
        """What is to be done with a prompt."""
        if found := [word for word in self._prompts if word in words]:
            return copy.deepcopy(self._prompts[max(found, key=words.rindex)])
        return self._turns[number] if number < len(self._turns) else [{"say": "Done."}]

    async def _play(self, session: str, steps: list[dict[str, Any]], words: str) -> None:
        for step in steps:
            if self._told[session].is_set():
                self._stop = "cancelled"
                return
            (name, given), *rest = step.items()
            if name == "ask":
                allowed = await self._ask(session, given)
                self._result = "allowed" if allowed else "refused"
                await self._play(session, dict(rest).get("then" if allowed else "else", []), words)
            elif name == "prompt":
                said = f"mode={self._can.get('mode', '')} prompt={words}"
                await self._update(session, "agent_message_chunk", content=_text(said))
            else:
                await getattr(self, f"_step_{name}")(session, given)

    async def _step_say(self, session: str, given: str) -> None:
        said = given.replace("{result}", self._result)
        await self._update(session, "agent_message_chunk", content=_text(said))

    async def _step_think(self, session: str, given: str) -> None:
        await self._update(session, "agent_thought_chunk", content=_text(given))

    async def _step_plan(self, session: str, given: list[dict[str, str]]) -> None:
        entries = [{"priority": "medium", "status": "pending", **one} for one in given]
        await self._update(session, "plan", entries=entries)

    async def _step_call(self, session: str, given: dict[str, Any]) -> None:
        await self._update(session, "tool_call", **_call(given))

    async def _step_update(self, session: str, given: dict[str, Any]) -> None:
        await self._update(session, "tool_call_update", **_call(given, new=False))

    async def _step_usage(self, session: str, given: dict[str, Any]) -> None:
        cost = {"amount": given["cost"], "currency": given.get("currency", "USD")}
        await self._update(session, "usage_update", used=10, size=1000, cost=cost)

    async def _step_mode(self, session: str, given: str) -> None:
        await self._update(session, "current_mode_update", currentModeId=given)

    async def _step_commands(self, session: str, given: list[str]) -> None:
        found = [{"name": one, "description": one} for one in given]
        await self._update(session, "available_commands_update", availableCommands=found)

    async def _step_read(self, session: str, given: dict[str, Any]) -> None:
        try:
            found = await self._peer.read_text_file(session_id=session, **given)
            self._result = found.content
        except RequestError as error:
            self._result = f"error {error.code}: {error}"

    async def _step_write(self, session: str, given: dict[str, Any]) -> None:
        try:
            await self._peer.write_text_file(session_id=session, **given)
            self._result = "written"
        except RequestError as error:
            self._result = f"error {error.code}: {error}"

    async def _step_run(self, session: str, given: dict[str, Any]) -> None:
        kill = given.pop("kill", False)
        limit = given.pop("limit", None)
        env = [schema.EnvVariable(**one) for one in given.pop("env", [])]
        terminal = await self._peer.create_terminal(
            session_id=session, env=env, output_byte_limit=limit, **given
        )
        name = terminal.terminal_id
        if kill:
            await self._peer.kill_terminal(session_id=session, terminal_id=name)
        ended = await self._peer.wait_for_terminal_exit(session_id=session, terminal_id=name)
        found = await self._peer.terminal_output(session_id=session, terminal_id=name)
        await self._peer.release_terminal(session_id=session, terminal_id=name)
        code = ended.signal if ended.exit_code is None else ended.exit_code
        self._result = f"{code} {found.truncated} {found.output}"

    async def _step_put(self, session: str, given: dict[str, str]) -> None:
        await asyncio.to_thread(Path(given["path"]).write_text, given["content"])

    async def _step_notify(self, session: str, given: dict[str, Any]) -> None:
        line = {"jsonrpc": "2.0", **given}
        os.write(1, json.dumps(line).encode() + b"\n")

    async def _step_start(self, session: str, given: list[str]) -> None:
        none = subprocess.DEVNULL
        await asyncio.create_subprocess_exec(
            *given, start_new_session=True, stdin=none, stdout=none
        )

    async def _step_wait(self, session: str, given: Any) -> None:
        await self._told[session].wait()

    async def _step_sleep(self, session: str, given: float) -> None:
        await asyncio.sleep(given)

    async def _step_die(self, session: str, given: int) -> None:
        sys.stderr.write("the scripted agent dies as it was told\n")
        sys.stderr.flush()
        os._exit(given)

    async def _step_fail(self, session: str, given: dict[str, Any]) -> None:
        raise RequestError(given.get("code", -32603), given.get("message", "it failed"))

    async def _step_end(self, session: str, given: str) -> None:
        self._stop = given

    async def _step_tokens(self, session: str, given: dict[str, int]) -> None:
        self._tokens = given

    async def _ask(self, session: str, given: dict[str, Any]) -> bool:
        offered = given.pop("options", _OPTIONS)
        options = [
            schema.PermissionOption(option_id=one["id"], name=one["id"], kind=one["kind"])
            for one in offered
        ]
        call = schema.ToolCallUpdate.model_validate(_call(given, new=False))
        found = await self._peer.request_permission(
            session_id=session, tool_call=call, options=options
        )
        if isinstance(found.outcome, schema.DeniedOutcome):
            return False
        kinds = {one["id"]: str(one["kind"]) for one in offered}
        return kinds[found.outcome.option_id].startswith("allow")

    async def _update(self, session: str, said: str, /, **fields: Any) -> None:
        note = schema.SessionNotification.model_validate(
            {"sessionId": session, "update": {"sessionUpdate": said, **fields}}
        )
        await self._peer.session_update(session_id=session, update=note.update)

    @property
    def _peer(self) -> acp.Client:
        assert self._client is not None
        return self._client

    def _check(self) -> None:
        if not self._in:
            raise RequestError.auth_required()

    def _known(self, session_id: str) -> None:
        self._check()
        if session_id in self._sessions:
            return
        code, words, data = self._can.get("stale", [-32002, "Resource not found", None])
        raise RequestError(code, words, data)

    def _modes(self) -> dict[str, Any]:
        names = self._can.get("modes", [])
        current = self._can.get("mode", names[0] if names else "")
        if not names:
            return {}
        if self._can.get("as_option"):
            values = [{"value": one, "name": one} for one in names]
            option = {"id": "approval", "name": "Mode", "category": "mode", "type": "select"}
            return {"configOptions": [{**option, "currentValue": current, "options": values}]}
        found = [{"id": one, "name": one} for one in names]
        return {"modes": {"currentModeId": current, "availableModes": found}}

    def _remembered(self) -> dict[str, int]:
        place = self._can.get("remember")
        if not place or not Path(place).exists():
            return {}
        found: dict[str, int] = json.loads(Path(place).read_text())
        return found

    def _remember(self) -> None:
        if place := self._can.get("remember"):
            Path(place).write_text(json.dumps(self._sessions))


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _call(given: dict[str, Any], *, new: bool = True) -> dict[str, Any]:
    """A call in the script's words, as the protocol has it."""
    content: list[dict[str, Any]] = [
        {"type": "diff", "path": one["path"], "oldText": one.get("old"), "newText": one["new"]}
        for one in given.get("diffs", [])
    ]
    if "text" in given:
        content.append({"type": "content", "content": _text(given["text"])})
    found = {
        "toolCallId": given.get("id", "call-1"),
        "title": given.get("title", "a call" if new else None),
        "kind": given.get("kind"),
        "status": given.get("status"),
        "rawInput": given.get("input"),
        "rawOutput": given.get("output"),
        "locations": [{"path": one} for one in given["paths"]] if "paths" in given else None,
        "content": content or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def main(words: list[str]) -> None:
    """Play the script whose path is given."""
    script = json.loads(Path(words[0]).read_text())
    agent = cast("acp.Agent", ScriptedAgent(script))  # what a script does not need is not there
    asyncio.run(acp.run_agent(agent, use_unstable_protocol=True))


if __name__ == "__main__":
    main(sys.argv[1:])
