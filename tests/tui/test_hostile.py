"""Text that attacks the reader, through every place where the screen shows something (A9, S10).

Each sink is shown every payload at 100 by 40. The screen has to hold the payload written out, and
the bytes that would go to the terminal hold nothing but the screen's own moves and colours.
"""

import pytest
from textual import events

from bridle.events import ApprovalAsked
from bridle.messages import ToolCall
from bridle.protocols.session_values import ChangedFile, SessionInfo, UndoConflict, UndoPreview
from bridle.tui.session_backend import Asked, Place
from bridle.tui.widgets.history import PromptHistory
from bridle.workspace.text import neutral
from rig import run
from tui.raw_rig import left_over, raw_app
from tui.rig import LocalBackend, Setup, call, own_house, script, workspace_in
from tui.screen_rig import say, seen, shows, until

PAYLOADS = {
    "ansi": "\x1b[2J\x1b[31m",
    "osc52": "\x1b]52;c;cHduZWQ=\x07",
    "osc8": "\x1b]8;;https://evil.example\x1b\\",
    "title": "\x1b]2;pwned\x1b\\",
    "bidi": "\u202e\u2066",
    "tags": "\U000e0041\U000e007f",
    "cr": "ok\rrm",
    "c1": "\x9b31m\x9d52;c;x\x9c",
    "nul": "\x00",
    "backspace": "\x08\x7f",
    "zero": "\u200b\u200f\ufeff",
    "separators": "\u2028\x85",
}
EVIL = " ".join(f"{name}:{text}:" for name, text in PAYLOADS.items())
NAME = "".join(PAYLOADS[one] for one in ("ansi", "bidi", "c1", "cr")).replace("/", "")


def missing(text, names=PAYLOADS):
    """The payloads that are not on the screen, written out."""
    flat = "".join(line.strip(" │↪▌›❯") for line in text.split("\n")).replace(" ", "")
    return [one for one in names if neutral(PAYLOADS[one], keep="").replace(" ", "") not in flat]


def is_safe(written):
    return left_over(written) == []


async def settled(pilot):
    """Until a key would count for the question."""
    panel = pilot.app.main.approvals.panel
    panel._guard._quiet = 0.0
    await until(pilot, lambda: panel.is_open and panel.is_armed)


def told(tmp_path, story, *replies, house=None, **flags):
    """Tell a story on the whole screen; what was written has to be harmless, also at the end."""

    async def whole():
        one = house or own_house(tmp_path, *replies, **flags)
        async with raw_app(one, size=(100, 40)) as (pilot, written):
            await story(pilot)
            assert is_safe(written), left_over(written)
        assert is_safe(written), left_over(written)

    run(whole())


def test_the_text_of_the_model(tmp_path):
    async def story(pilot):
        await say(pilot, "go")
        assert missing(seen(pilot)) == []

    told(tmp_path, story, f"Listen: {EVIL}\n\n```\n{EVIL}\n```\n\n- [x]({EVIL}) **{EVIL}**")


def test_links_of_the_model_are_text_and_nothing_to_follow(tmp_path):
    async def story(pilot):
        await say(pilot, "go")
        await shows(pilot, "bank.example")

    told(tmp_path, story, "[bank.example](https://evil.example/login) <https://evil.example>")


def test_the_thoughts_of_the_model(tmp_path):
    async def story(pilot):
        await say(pilot, "go")
        await pilot.press("ctrl+t")
        await pilot.pause()
        assert missing(seen(pilot)) == []

    told(tmp_path, story, {"thinking": f"Hm. {EVIL}", "text": "So."})


def test_the_name_of_a_tool_that_is_not_there(tmp_path):
    async def story(pilot):
        await say(pilot, "go")
        assert missing(seen(pilot), ["ansi", "bidi"]) == []

    told(tmp_path, story, call(f"tool{NAME}", x=EVIL), "So.")


def test_the_command_that_a_question_is_about(tmp_path):
    """A9: every byte of it is shown or escaped."""

    async def story(pilot):
        await say(pilot, "go", wait=False)
        await settled(pilot)
        assert missing(seen(pilot)) == []
        await pilot.press("n")
        await shows(pilot, "So.")

    told(tmp_path, story, call("shell", command=f"echo {EVIL}"), "So.")


def test_a_change_that_a_question_is_about(tmp_path):
    async def story(pilot):
        await say(pilot, "go", wait=False)
        await settled(pilot)
        assert missing(seen(pilot), [one for one in PAYLOADS if one != "nul"]) == []
        await pilot.press("n")
        await shows(pilot, "So.")

    content = EVIL.replace("\x00", "")
    told(tmp_path, story, call("write", path=f"a{NAME}", content=content), "So.")


def test_a_plan_and_a_question_of_the_model(tmp_path):
    """P4"""

    async def story(pilot):
        await say(pilot, "go", wait=False)
        await settled(pilot)
        assert missing(seen(pilot)) == []
        await pilot.press("n")
        await shows(pilot, "which")
        await settled(pilot)
        assert missing(seen(pilot)) == []
        await pilot.press("1", "enter")
        await shows(pilot, "So.")

    asked = call("ask_user", question=f"which {EVIL}", options=[f"a{NAME}", "b"])
    plan = call("exit_plan_mode", plan=f"# Plan {EVIL}\n\n1. {EVIL}")
    told(tmp_path, story, plan, asked, "So.", mode="plan")


def test_what_a_tool_says_and_bytes_that_are_no_text(tmp_path):
    evil = workspace_in(tmp_path) / "evil.txt"
    evil.write_bytes(EVIL.encode() + b"\n\xff\xfe\x80 end of it\n")

    async def story(pilot):
        await say(pilot, "go")
        await pilot.press("ctrl+o")
        await shows(pilot, "end of it")
        assert missing(seen(pilot), ["ansi", "osc52", "bidi", "c1"]) == []

    told(tmp_path, story, call("shell", command="cat evil.txt"), "So.", mode="auto")


def test_names_of_files(tmp_path):
    (workspace_in(tmp_path) / f"evil{NAME}.txt").write_text("x")

    async def story(pilot):
        await say(pilot, "go")
        await pilot.press("@", *"evil")
        await shows(pilot, r"\x1b[2J")
        await pilot.press("tab")
        await pilot.pause()

    write = call("write", path=f"new{NAME}.txt", content="x\n")
    told(tmp_path, story, write, call("shell", command="ls"), "So.", mode="auto")


def test_the_title_of_a_session(tmp_path):
    async def story(pilot):
        await say(pilot, "go")
        await pilot.app.backend.session.rename(f"evil {EVIL}")
        pilot.app.main.draw_soon()
        await say(pilot, "/sessions", wait=False)
        await shows(pilot, "evil ansi")
        await pilot.press("escape")

    told(tmp_path, story, "So.")


def test_what_is_pasted(tmp_path):
    async def story(pilot):
        pilot.app.screen.focused.post_message(events.Paste(EVIL))
        await shows(pilot, r"\x1b[2J")
        assert missing(seen(pilot), [one for one in PAYLOADS if one != "cr"]) == []
        await pilot.press("enter")
        await shows(pilot, "So.")

    told(tmp_path, story, "So.")


def test_what_was_written_before_and_what_an_editor_gave_back(tmp_path):
    async def story(pilot):
        composer = pilot.app.main.composer
        for text in (f"earlier {EVIL}", f"edited {EVIL}"):
            composer.load(text)  # as both do
            await shows(pilot, text.split(" ")[0])
            assert missing(seen(pilot), ["ansi", "osc52", "bidi", "tags", "c1", "zero"]) == []
        composer.load("")
        composer.prompts.add(f"history {EVIL}")
        await pilot.press("up")
        await shows(pilot, "history")

    assert isinstance(PromptHistory(), PromptHistory)
    told(tmp_path, story, "So.")


class Liar(LocalBackend):
    """A house whose answers are as a hostile server would give them."""

    @property
    def model(self):
        return f"model{EVIL}"

    @property
    def agent(self):
        return f"agent{NAME}"

    @property
    def place(self):
        return Place(workspace=f"/w{EVIL}", sandbox=NAME, branch=NAME, server=f"http://x{NAME}")

    async def sessions(self, query="", limit=200):
        more = {"workspace": EVIL, "model": EVIL, "agent": NAME, "holder": NAME}
        listed = SessionInfo(
            id=f"id{NAME}", title=f"listed {EVIL}", state=NAME, parent=NAME, **more
        )
        return (listed,)

    async def preview(self, session_id, lines=40):
        return f"previewed {EVIL}\n{EVIL}"

    async def pending(self):
        asked = ApprovalAsked(
            ToolCall("1", f"tool{NAME}", {"command": EVIL, NAME: EVIL}),
            "shown",
            f"because {EVIL}",
            cwd=EVIL,
            commands=(EVIL,),
            paths=(EVIL, "b"),
            hosts=(NAME,),
            proposal=f"allow: {EVIL}",
            covers="",
        )
        return (Asked(session_id="x", title=f"waiting {EVIL}", asked=asked, diff=f"+{EVIL}"),)

    async def preview_rule(self, session_id, asked):
        return (f"rule {EVIL}", EVIL)

    async def undo_preview(self, turn=0):
        files = (ChangedFile(f"undone{NAME}", f"how{NAME}", f"-{EVIL}\n+{EVIL}\n"),)
        return UndoPreview(
            turn=1,
            files=files,
            uncovered=(EVIL,),
            clashes=(UndoConflict(path=EVIL, why=EVIL, diff=EVIL),),
            token=NAME,
        )

    async def doctor(self):
        return (f"found {EVIL}",)

    async def budget(self):
        return ((f"limit{NAME}", EVIL, EVIL),)


def liar(tmp_path):
    folder = workspace_in(tmp_path)
    given = {"workspace": str(folder), "model": script(tmp_path, "So.")}
    return Liar(Setup(given), given, told=[])


def test_what_a_server_says_in_the_bar_and_the_tray(tmp_path):
    async def story(pilot):
        await shows(pilot, "approval needed")
        await pilot.press("f3")
        await shows(pilot, "because ansi")
        panel = pilot.app.screen.panel
        panel._guard._quiet = 0.0
        await until(pilot, lambda: panel.is_armed)
        assert missing(seen(pilot), ["ansi", "bidi"]) == []
        await pilot.press("end")
        await until(pilot, lambda: panel.sheet.seen)
        await pilot.press("r")
        await shows(pilot, "Save this rule?")
        await pilot.press("escape")

    told(tmp_path, story, house=liar(tmp_path))


@pytest.mark.parametrize(
    ("command", "words"),
    [("/sessions", "listed"), ("/doctor", "found"), ("/budget", "limit"), ("/undo", "undone")],
)
def test_what_a_server_says_to_a_command(tmp_path, command, words):
    async def story(pilot):
        await say(pilot, "go")
        await say(pilot, command, wait=False)
        await shows(pilot, words)
        assert missing(seen(pilot), ["ansi"]) == []

    told(tmp_path, story, house=liar(tmp_path))


@pytest.mark.parametrize("name", PAYLOADS)
def test_the_check_itself_would_find_each_of_them(name):
    assert left_over([f"\x1b[1;1H{PAYLOADS[name]}\x1b[0m"]) != []


def test_the_check_lets_the_screens_own_bytes_pass():
    assert (
        left_over(["\x1b[?2026h\x1b[1;1H\x1b[38;2;1;2;3mhi\x1b[0m", "\x1b]2;x\x07\x1b[23;2t"]) == []
    )
