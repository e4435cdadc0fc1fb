"""The tool `mcp`: a look into servers, which is also what starts one for the first time.

Looking at what there is changes nothing. A resource or a prompt is asked of the server by words of
the model's choosing, and what that does there is not known: it asks.
"""

from typing import TYPE_CHECKING, Any

from bridle.policy import Act, Does, Facts, ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from bridle.tools.mcp.servers import Servers

NAME = "mcp"
_LOOKS = ("servers", "tools", "resources", "prompts")
_ASKS = ("read", "prompt")
_TAKES = {"read": "uri", "prompt": "name"}
_POLICY = ToolPolicy()
_SHOWN = 40  # servers that the description names
_TEXT = {"type": "string", "minLength": 1}


class Finder:
    """Looks into servers."""

    name = NAME
    policy = _POLICY
    prose = Prose("mcp")
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": [*_LOOKS, *_ASKS]},
            "server": {**_TEXT, "description": "The name of a server."},
            "query": {**_TEXT, "description": "Words that a tool is about."},
            "uri": {**_TEXT, "description": "The resource to read."},
            "name": {**_TEXT, "description": "The prompt to get."},
            "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["action"],
        "additionalProperties": False,
    }

    def __init__(self, servers: "Servers") -> None:
        self._servers = servers
        self.description = f"{self.prose}\n\n{_overview(servers)}"

    def facts(self, arguments: dict[str, Any]) -> Facts:
        """A look reads; everything else asks."""
        action, server = str(arguments.get("action")), str(arguments.get("server", ""))
        does: Does = "reads" if action in _LOOKS else "changes"
        unfit = sorted({"uri", "name"} & arguments.keys() - {_TAKES.get(action)})
        if unfit and does != "reads":  # what is judged is to be what is asked for
            return Facts(_POLICY, floor=f"`{action}` takes no `{unfit[0]}`")
        what = arguments.get(_TAKES.get(action, ""), "")
        subject = " ".join(filter(None, (action, server, str(what))))
        reason = "" if does == "reads" else f"what {server} does with it is not known here"
        return Facts(_POLICY, acts=(Act((NAME,), subject, does, reason),))

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Look, or have a resource or a prompt."""
        from bridle.tools.mcp.looking import Looking

        return await Looking(self._servers, arguments, context).obey()


def _overview(servers: "Servers") -> str:
    """Each server in a line: what is known of it."""
    lines = []
    for server in list(servers.servers.values())[:_SHOWN]:
        usable = [one for one in server.definitions.values() if not one.problem]
        offered = len(servers.offered(server))
        if server.trouble:
            said = f"cannot be used: {one_line(server.trouble, 120)}"
        elif not server.is_known:
            said = "not looked into yet"
        elif offered < len(usable):
            said = f"{len(usable)} tools, of which {offered} are offered; look for others"
        else:
            said = f"{len(usable)} tools, all offered"
        lines.append(f"- {server.name}: {said}")
    return "Servers:\n" + "\n".join(lines)
