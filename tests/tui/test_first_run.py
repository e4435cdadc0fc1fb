"""The first run on the whole screen: no key, a new folder, what is kept of a choice."""

import json

import pytest

from bridle.cli.local_backend import local_backend as house_of
from bridle.cli.start_checks import StartChecks
from bridle.config.trust import Trust
from bridle.errors import ConfigError, MissingModel
from bridle.runtime import providers
from bridle.tui.app import BridleApp
from bridle.tui.dialogs import ChoiceDialog, ConfirmDialog, TextDialog, TextView
from bridle.tui.model.onboarding import trust_lines
from bridle.tui.screens.onboarding import key_lines
from bridle.tui.theme import initial_theme
from bridle.tui.user_settings import save_setting
from rig import run
from tui.rig import script
from tui.screen_rig import seen, shows, until
from tui.slash_rig import opens, press


@pytest.fixture
def no_servers(monkeypatch):
    """Nobody answers on the usual ports, whatever runs on this machine."""
    monkeypatch.setattr(providers, "local_servers", list)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A workspace of its own, and a settings file that is not there yet."""
    found = tmp_path / "workspace"
    (found / ".bridle").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(found)
    return found


def play(flags, story, size=(80, 24)):
    """Open the screen as `bridle` does, tell the story, and leave."""

    async def whole():
        app = BridleApp(lambda: house_of(flags))
        app.main.checks = lambda: StartChecks(flags)
        async with app.run_test(size=size) as pilot:
            await story(pilot)
        if app.backend is not None:
            await app.backend.leave()

    run(whole())


async def ready(pilot):
    await until(pilot, lambda: pilot.app.main.is_ready or pilot.app.failure)
    assert pilot.app.failure is None


def test_no_key_is_said_and_offline_is_taken_for_this_time(folder, tmp_path, no_servers):
    flags = {}

    async def story(pilot):
        await opens(pilot, ChoiceDialog)
        await shows(pilot, "No API key was found")
        assert "ANTHROPIC_API_KEY" in seen(pilot)
        await press(pilot, "enter")
        await opens(pilot, ConfirmDialog)
        await press(pilot, "n")
        await ready(pilot)
        assert pilot.app.backend.model.startswith("offline")
        assert not (tmp_path / "config").exists()

    play(flags, story)


def test_a_choice_is_written_when_the_person_says_so_and_not_asked_for_again(
    folder, tmp_path, no_servers
):
    async def story(pilot):
        await opens(pilot, ChoiceDialog)
        await press(pilot, "enter")
        await opens(pilot, ConfirmDialog)
        await press(pilot, "y")
        await ready(pilot)
        await shows(pilot, "Saved to")

    play({}, story)
    assert (tmp_path / "config" / "bridle" / "config.yaml").read_text() == "model: offline\n"
    assert StartChecks({}).missing_model() is None


def test_how_to_set_a_key_is_shown_and_no_key_is_written(folder, tmp_path, no_servers):
    async def story(pilot):
        await opens(pilot, ChoiceDialog)
        await pilot.press(*"api key")
        await press(pilot, "enter")
        await opens(pilot, TextDialog)
        await shows(pilot, "export ANTHROPIC_API_KEY=")
        await pilot.press("escape")
        await opens(pilot, ChoiceDialog)

    play({}, story)
    assert not (tmp_path / "config").exists()
    assert "never stores it" in "\n".join(line for line, _ in key_lines())


@pytest.mark.parametrize("servers", [[], [("ollama", "http://127.0.0.1:11434/v1", "qwen")]])
def test_escape_leaves_and_uses_no_model_that_nobody_chose(folder, monkeypatch, servers):
    monkeypatch.setattr(providers, "local_servers", lambda: list(servers))

    async def story(pilot):
        await opens(pilot, ChoiceDialog)
        await shows(pilot, "Esc to quit bridle")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.failure)
        assert isinstance(pilot.app.failure, MissingModel)
        assert "bridle -m offline" in pilot.app.failure.hint
        assert pilot.app.backend is None

    play({}, story)


def test_a_local_server_that_answers_is_offered_first(folder, monkeypatch):
    there = [("ollama", "http://127.0.0.1:11434/v1", "qwen\x1b[2J")]
    monkeypatch.setattr(providers, "local_servers", lambda: list(there))

    async def story(pilot):
        await opens(pilot, ChoiceDialog)
        await shows(pilot, "ollama/qwen\\x1b[2J")
        await pilot.press(*"offline")
        await press(pilot, "enter")
        await opens(pilot, ConfirmDialog)
        await press(pilot, "n")
        await ready(pilot)

    play({}, story)


def test_with_a_key_or_a_named_model_nothing_is_asked(folder, monkeypatch, no_servers):
    assert StartChecks({"model": "offline"}).missing_model() is None
    assert StartChecks({"resume": "x"}).missing_model() is None
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert StartChecks({}).missing_model() is None


def test_a_new_folder_is_asked_about_and_what_was_shown_is_what_is_trusted(folder, tmp_path):
    (folder / "AGENTS.md").write_text("Be kind.\x1b]0;x\x07\n")
    flags = {"model": script(tmp_path, "Hello.")}

    async def story(pilot):
        await opens(pilot, ConfirmDialog)
        await shows(pilot, "Be kind.\\x1b]0;x\\x07")
        (folder / "AGENTS.md").write_text("Be cruel.\n")  # after it was looked at
        await until(pilot, lambda: pilot.app.screen.query_one(TextView).was_read)
        await press(pilot, "y")
        await ready(pilot)
        await shows(pilot, "Trusted as shown: AGENTS.md.")

    play(flags, story)
    trust = Trust(tmp_path / "state")
    assert trust.read(folder, "AGENTS.md") is None  # other bytes than those that were shown
    (folder / "AGENTS.md").write_text("Be kind.\x1b]0;x\x07\n")
    assert trust.read(folder, "AGENTS.md") is not None


def test_no_is_remembered_until_the_bytes_change(folder, tmp_path):
    (folder / "AGENTS.md").write_text("Be kind.\n")
    flags = {"model": script(tmp_path, "Hello.")}

    async def story(pilot):
        await opens(pilot, ConfirmDialog)
        await press(pilot, "n")
        await ready(pilot)
        await shows(pilot, "AGENTS.md is not used until you trust the folder")

    play(flags, story)
    assert StartChecks(flags).untrusted_folder() is None
    (folder / "AGENTS.md").write_text("Be kinder.\n")
    assert StartChecks(flags).untrusted_folder() is not None
    assert not Trust(tmp_path / "state").is_trusted(folder)


def test_keys_typed_ahead_trust_nothing(folder, tmp_path):
    (folder / "AGENTS.md").write_text("Be kind.\n")
    flags = {"model": script(tmp_path, "Hello.")}

    async def story(pilot):
        await pilot.press(*"yyyy")
        await opens(pilot, ConfirmDialog)
        assert pilot.app.screen.guard._quiet > 0
        pilot.app.screen.guard._quiet = 3600.0  # too soon, however long this machine takes
        await pilot.press(*"yyyy", "enter")
        assert isinstance(pilot.app.screen, ConfirmDialog)
        assert Trust(tmp_path / "state").folders() == {}
        await pilot.press("escape")
        await ready(pilot)

    play(flags, story)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 20)])
def test_a_long_file_has_to_be_read_to_its_end(folder, tmp_path, size):
    (folder / "AGENTS.md").write_text("".join(f"line {n}\n" for n in range(300)))
    flags = {"model": script(tmp_path, "Hello.")}

    async def story(pilot):
        await opens(pilot, ConfirmDialog)
        await press(pilot, "y")
        assert isinstance(pilot.app.screen, ConfirmDialog)
        assert "Trust these files" in seen(pilot)
        await pilot.press("end")
        await shows(pilot, "line 299")
        await press(pilot, "y")
        await ready(pilot)

    play(flags, story, size)
    assert Trust(tmp_path / "state").is_trusted(folder)


@pytest.mark.parametrize(("key", "asks_again"), [("n", False), ("escape", True), ("ctrl+c", True)])
def test_only_a_no_keeps_bridle_from_asking_about_the_folder_again(
    folder, tmp_path, key, asks_again
):
    (folder / "AGENTS.md").write_text("Be kind.\n")

    async def story(pilot):
        await opens(pilot, ConfirmDialog)
        await press(pilot, key)
        await ready(pilot)

    play({"model": script(tmp_path, "Hello.")}, story)
    assert (StartChecks({}).untrusted_folder() is not None) == asks_again


def test_rules_that_cannot_be_understood_are_not_trusted_and_the_screen_opens(folder, tmp_path):
    (folder / ".bridle" / "policy.yaml").write_text("rules: [what is this\n")
    flags = {"model": script(tmp_path, "Hello.")}

    async def story(pilot):
        await opens(pilot, ConfirmDialog)
        await until(pilot, lambda: pilot.app.screen.query_one(TextView).was_read)
        await press(pilot, "y")
        await ready(pilot)
        await shows(pilot, "policy.yaml")

    play(flags, story)
    assert not Trust(tmp_path / "state").is_trusted(folder)


def test_a_folder_that_sets_nothing_is_not_asked_about(folder):
    assert StartChecks({}).untrusted_folder() is None


def test_a_damaged_memory_of_what_was_declined_only_asks_again(folder, tmp_path):
    (folder / "AGENTS.md").write_text("Be kind.\n")
    checks = StartChecks({})
    checks.decline(checks.untrusted_folder())
    assert checks.untrusted_folder() is None
    kept = tmp_path / "state" / "declined.json"
    assert len(json.loads(kept.read_text())) == 1
    kept.write_text("{broken")
    assert checks.untrusted_folder() is not None


def test_bytes_that_are_no_text_are_all_shown(folder):
    (folder / "AGENTS.md").write_bytes(b"a\xffb\x00c")
    lines = trust_lines(StartChecks({}).untrusted_folder().files)
    assert ("│ a\\xffb\x00c", "") in lines  # the sheet writes the rest out


def test_a_setting_is_written_beside_the_others_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "config.yaml"
    monkeypatch.setenv("BRIDLE_CONFIG", str(path))
    path.write_text("theme: dark  # mine\nlimits:\n  max_steps: 5\n")
    save_setting("theme", "light")
    assert path.read_text() == "theme: light\nlimits:\n  max_steps: 5\n"
    save_setting("model", "ollama/qwen3:8b")
    assert path.read_text().endswith('model: "ollama/qwen3:8b"\n')
    path.write_text("{theme: dark, mode: ask}\n")
    with pytest.raises(ConfigError, match="cannot be added"):
        save_setting("theme", "light")
    assert path.read_text() == "{theme: dark, mode: ask}\n"


def test_the_theme_of_the_settings_is_there_from_the_start(folder, tmp_path):
    path = tmp_path / "config" / "bridle" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("theme: light\n")
    path.chmod(0o600)

    async def story(pilot):
        await ready(pilot)
        assert pilot.app.theme == "bridle-light"

    play({"model": script(tmp_path, "Hello.")}, story)


def test_a_folder_that_brings_commands_or_skills_alone_is_asked_about(folder, tmp_path):
    own = folder / ".bridle" / "commands" / "ship.md"
    own.parent.mkdir()
    own.write_text("Ship $ARGUMENTS.\n")
    flags = {"model": script(tmp_path, "Shipped.")}
    assert [one.name for one in StartChecks(flags).untrusted_folder().files] == [
        ".bridle/commands/ship.md"
    ]

    async def story(pilot):
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmDialog))
        await shows(pilot, "Ship $ARGUMENTS.")
        await press(pilot, "y")
        await ready(pilot)
        await until(pilot, lambda: [one.name for one in pilot.app.main.own()] == ["ship"])
        own.write_text("Ship something else.\n")
        assert pilot.app.backend.commands() == ()  # other bytes than those that were shown

    play(flags, story)


@pytest.mark.parametrize(
    ("flag", "environ", "saved", "shown"),
    [
        (None, {}, "", "dark"),
        (None, {"COLORFGBG": "0;15"}, "", "light"),
        (None, {"COLORFGBG": "0;15"}, "mode: ask\ntheme: dark # mine\n", "dark"),
        (None, {}, 'theme: "light"\n', "light"),
        (None, {}, "theme: plain\n", "plain"),
        (None, {}, "theme: no such\n", "dark"),
        (None, {"BRIDLE_THEME": "light"}, "theme: dark\n", "light"),
        ("dark", {"BRIDLE_THEME": "light"}, "theme: light\n", "dark"),
        ("auto", {}, "theme: light\n", "dark"),
    ],
)
def test_the_first_picture_has_the_colours_that_the_screen_will_have(
    flag, environ, saved, shown, tmp_path
):
    path = tmp_path / "config.yaml"
    path.write_text(saved)
    assert initial_theme(flag, {"BRIDLE_CONFIG": str(path), **environ}) == shown
    assert initial_theme(flag, {"BRIDLE_CONFIG": str(tmp_path), **environ}) in ("dark", "light")
