"""Whether a model says that it did something. Asked only where nothing was done. Pure.

A request to change something that no call followed can be answered with a question, and with
nothing else: whatever other words a model finds for «done» would not be true.
"""

import re

from bridle.chat.profile import Telling
from bridle.chat.tasks.offline_wish import Wish

_SENTENCES = (
    "task_created",
    "task_completed",
    "task_deleted",
    "task_updated",
    "confirm_delete",
    "confirm_bulk",
)
_CHANGED = "added|created|deleted|removed|updated|changed|renamed|moved|reopened|cleared|erased"
_SAID = re.compile(
    rf"\bI(?:'ve|’ve| have)(?: just| now| successfully| already)* (?:{_CHANGED}|marked|completed)\b"
    rf"|\b(?:was|were|has been|have been|is now|are now)(?: successfully)? (?:{_CHANGED})\b"
    rf"|(?:^|[.!]\s+)(?:all )?(?:done|set|{_CHANGED}|marked|completed)\b",
    re.IGNORECASE,
)


def claims(telling: Telling, wish: Wish) -> bool:
    """Does the model say that it did, or asked, what it did not?"""
    known = [telling.replies.find(telling.language, key) or "" for key in _SENTENCES]
    if any(one.partition("{")[0] in telling.said for one in known):
        return True
    wanted = wish.is_action or wish.kind == "add"
    if wanted and telling.said and not re.search("[?؟]", telling.said):
        return True
    return _SAID.search(telling.said) is not None
