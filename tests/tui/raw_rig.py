"""A driver without a terminal that keeps every byte it would have written to one."""

import re
from contextlib import asynccontextmanager

from textual.drivers.headless_driver import HeadlessDriver

from bridle.tui.app import BridleApp
from tui.screen_rig import until

_OURS = re.compile(  # what the screen itself writes: moves, colours, modes
    r"\x1b\[\d+;\d+H|\x1b\[[0-9;]*m|\x1b\[\?[0-9;]+[hl]|\x1b\[2[23];2t"
)
_POINTER = re.compile(r"\x1b\]22;[a-z-]+\x07")
_TITLE = re.compile(r"\x1b\]2;[^\x00-\x1f\x7f-\x9f]*\x07")
_CALL = re.compile(r"\x1b\]9;bridle: [^\x00-\x1f\x7f-\x9f]*\x07")


class Written(HeadlessDriver):
    """Not headless as far as the app knows."""

    all: list[str] = []

    @property
    def is_headless(self):
        return False

    def write(self, data):
        self.all.append(data)


@asynccontextmanager
async def raw_app(house, size=(80, 24)):
    """The whole screen on this house; gives the pilot and the list of what was written."""
    Written.all = []
    app = BridleApp(lambda: house)
    app.driver_class = Written
    async with app.run_test(headless=False, size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.main.is_ready or app.failure)
        yield pilot, Written.all
    if app.backend is not None:
        await app.backend.leave()


def left_over(written):
    """What was written besides the screen's own sequences and honest text: the dangerous rest."""
    text = "".join(written)
    for ours in (_POINTER, _TITLE, _CALL, _OURS):
        text = ours.sub("", text)
    hidden = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
    return re.findall(hidden + "|[\U000e0000-\U000e0fff]|[\ud800-\udfff]", text)
