"""Something that is done once, after a while.

Textual's own timer for one time is lost without a word where the machine stands still for as long
as it should wait: it takes its one moment for one that was missed.
"""

import asyncio
from collections.abc import Callable

from textual.message_pump import MessagePump


def after(seconds: float, pump: MessagePump, act: Callable[[], object]) -> asyncio.TimerHandle:
    """Have the widget or screen do it then; `cancel` of what comes back takes it back."""
    return asyncio.get_running_loop().call_later(seconds, pump.call_next, act)
