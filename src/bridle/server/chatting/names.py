"""Which names a user of the chat may have: those that are no address of the server itself. Pure.

`/api/{user_id}/chat` stands beside the server's own addresses, so that a user by the name of one
of them could never be reached, or would be mistaken for it.
"""

RESERVED = frozenset(
    (
        *("agents", "agui", "approvals", "assets", "chat", "doctor", "events", "favicon.svg"),
        *("health", "login", "logout", "mcp", "me", "metrics", "models", "openapi.json", "page"),
        *("ready", "search", "sessions", "static", "status", "tasks", "token", "tokens", "users"),
        *("workspaces", "conversations", ".", "..", "admin", "api", "system"),
    )
)
LONGEST = 200  # characters, as the database keeps them


def is_user(name: str) -> bool:
    """May a user be called that?"""
    return (
        0 < len(name) <= LONGEST
        and name == name.strip()
        and name.isprintable()
        and "/" not in name
        and "\\" not in name
        and name.casefold() not in RESERVED
    )
