"""The order of AG-UI's events, as its own client demands it: begun once, ended once."""

_OPENS = {
    "TEXT_MESSAGE_START": ("text", "message_id"),
    "REASONING_START": ("span", "message_id"),
    "REASONING_MESSAGE_START": ("thought", "message_id"),
    "TOOL_CALL_START": ("call", "tool_call_id"),
}
_NEEDS = {
    "TEXT_MESSAGE_CONTENT": ("text", "message_id"),
    "REASONING_MESSAGE_CONTENT": ("thought", "message_id"),
    "TOOL_CALL_ARGS": ("call", "tool_call_id"),
}
_ENDS = {
    "TEXT_MESSAGE_END": ("text", "message_id"),
    "REASONING_END": ("span", "message_id"),
    "REASONING_MESSAGE_END": ("thought", "message_id"),
    "TOOL_CALL_END": ("call", "tool_call_id"),
}


class Referee:
    """Knows what is open."""

    def __init__(self):
        self.open = set()

    def take(self, event):
        kind = event.type.value
        for table in (_OPENS, _NEEDS, _ENDS):
            if kind in table:
                name, field = table[kind]
                key = (name, getattr(event, field))
                assert (key in self.open) is (table is not _OPENS), (kind, key)
                if table is _OPENS:
                    self.open.add(key)
                elif table is _ENDS:
                    self.open.remove(key)
