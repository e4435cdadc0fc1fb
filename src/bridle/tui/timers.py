"""Call something once, after a while.

Textual's own one-shot timer is lost silently if the machine stands still for as long as it should
wait: it takes its only tick for one that was missed.
"""

import asyncio
from collections.abc import Callable

from textual.message_pump import MessagePump


def call_later(seconds: float, pump: MessagePump, act: Callable[[], object]) -> asyncio.TimerHandle:
    """Call `act` in the widget's or screen's own task then; the handle can be cancelled."""
    return asyncio.get_running_loop().call_later(seconds, pump.call_next, act)
