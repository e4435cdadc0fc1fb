"""A small app with a panel of questions in the flow, as the tests of the panel need it."""

from textual import events
from textual._time import get_time
from textual.app import App
from textual.widgets import Input, Static

from bridle.events import ApprovalAsked
from bridle.messages import ToolCall
from bridle.tui.session_backend import Asked
from bridle.tui.widgets.approval_panel import ApprovalPanel
from rig import run

LONG = "\n".join(f"echo line {number}" for number in range(60))


def asked(shown="one", name="shell", session="here", title="", diff="", **more):
    """A question; `arguments` are a shell's unless they are given."""
    arguments = more.pop("arguments", {"command": "git push"})
    event = ApprovalAsked(ToolCall(f"call-{shown}", name, arguments), shown, **more)
    return Asked(session_id=session, title=title, asked=event, diff=diff)


class Small(App):
    """Talk above, a panel, and somewhere to write."""

    CSS = "#talk { height: 1fr; } #composer { height: 3; }"

    def __init__(self, quiet=0.0, held=lambda _one: None):
        super().__init__()
        self.given, self.strays, self.emptied = [], [], 0
        self.previewed = ("it would have covered 2 calls", "into the policy file")
        self.panel = ApprovalPanel(self._preview, held, is_writing=self._writes, quiet=quiet)

    def compose(self):
        yield Static("\n".join(f"talk {number}" for number in range(100)), id="talk")
        yield self.panel
        yield Input(id="composer")

    def on_mount(self):
        self.query_one("#composer").focus()

    def _writes(self):
        return bool(self.query_one("#composer", Input).value)

    async def _preview(self, one):
        if isinstance(self.previewed, Exception):
            raise self.previewed
        return self.previewed

    def on_approval_panel_answered(self, event):
        self.given.append((event.session_id, event.asked.shown, event.answer, event.mode))

    def on_approval_panel_strayed(self, event):
        self.strays.append(event.text)

    def on_approval_panel_emptied(self):
        self.emptied += 1
        self.query_one("#composer").focus()


def play(story, size=(80, 24), **rest):
    """Tell a story in the small app."""

    async def whole():
        app = Small(**rest)
        async with app.run_test(size=size, notifications=True) as pilot:
            await story(app, pilot)

    run(whole())


async def until(pilot, true):
    """Until that is so."""
    while not true():
        await pilot.pause()


async def put(pilot, *several, **more):
    """Have these open, and drawn."""
    pilot.app.panel.show(several, here="here", **more)
    await drawn(pilot)


async def drawn(pilot):
    """Until what is asked stands on the screen."""
    await until(pilot, lambda: pilot.app.panel.is_armed)
    await pilot.pause()


async def press_at(pilot, key, at):
    """A key that was pressed then, however late it comes."""
    event = events.Key(key, key if len(key) == 1 else None)
    event.time = at
    pilot.app.panel.post_message(event)
    await pilot.pause()


def now():
    """The clock of the events."""
    return get_time()


def screen_text(app):
    """What stands on the screen, line by line."""
    return [strip.text for strip in app.screen._compositor.render_strips()]
