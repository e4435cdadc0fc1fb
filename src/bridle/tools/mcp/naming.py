"""What a tool of a server is called: `mcp__SERVER__TOOL`, within the rule that vendors have. Pure.

A server's name has no double underscore and does not end in one, so that no tool of one server can
be taken for a tool of another.
"""

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

LONGEST = 64
SERVER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-])){0,31}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_MARK = 8  # characters that tell apart what would be spelled alike


def spelled(server: str, tools: Iterable[str]) -> dict[str, str]:
    """The name of each tool, by the server's own name for it; no two are alike.

    A tool whose own name needs no change always has it. Of those that were changed, or cut, and
    would be spelled like another, each carries a mark of its own name.
    """
    own = list(dict.fromkeys(tools))
    plain = {tool: f"mcp__{server}__{_OTHER.sub('_', tool)}" for tool in own}
    shared = Counter(plain.values())
    exact = {tool: name for tool, name in plain.items() if _is_exact(tool, name)}
    taken = set(exact.values())
    found = dict(exact)
    for tool in sorted(set(own) - set(exact)):
        name = plain[tool]
        if shared[name] > 1 or len(name) > LONGEST or not tool:
            name = _marked(name, tool)
        while name in taken:  # somebody has named a tool after another's mark
            name = _marked(name, f"{tool}\0{name}")
        taken.add(name)
        found[tool] = name
    return {tool: found[tool] for tool in own}


def _is_exact(tool: str, name: str) -> bool:
    return bool(tool) and len(name) <= LONGEST and name.endswith(f"__{tool}")


def _marked(name: str, tool: str) -> str:
    mark = sha256(tool.encode(errors="replace")).hexdigest()[:_MARK]
    return f"{name[: LONGEST - _MARK - 1]}_{mark}"
