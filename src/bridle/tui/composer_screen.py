"""The composer on the main screen: where its choices come from, and what becomes of what is typed.

A line with a slash is a command and is obeyed, one at a time; the rest is a prompt, and the screen
sends it. What the commands need is imported when the first of them is typed.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bridle.config.paths import state_folder_str
from bridle.errors import AgentError, MissingModel
from bridle.tui.screen_acts import Acts
from bridle.tui.widgets.composer import Composer
from bridle.tui.widgets.history import Drafts, Prompts
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.presentation.commands import Command
    from bridle.tui.dialogs import Dialog
    from bridle.tui.model.onboarding import Preface
    from bridle.tui.screen_following import Following
    from bridle.tui.slash.screen import ScreenInteraction


class Commanding(Acts):
    """What the composer asks for, and hears, on the screen."""

    _own: "tuple[Command, ...]" = ()
    _interaction: "ScreenInteraction | None" = None
    following: "Following | None" = None

    def __init__(self) -> None:
        super().__init__()
        self._remarks: list[str] = []

    def make_composer(self) -> Composer:
        """The composer, with this user's history."""
        state = state_folder_str(os.environ)
        return Composer(
            self._files, self._arguments, self.own, prompts=Prompts(state), drafts=Drafts(state)
        )

    def own(self) -> "Sequence[Command]":
        """The user's own commands, as they were last looked for."""
        return self._own

    async def look_for_commands(self) -> None:
        """They may have changed since."""
        if self.house is not None:
            self._own = await asyncio.to_thread(self.house.commands)

    async def introduce(self, preface: "Preface") -> bool:
        """Ask what has to be known before the house is opened: the session, the folder, the model.

        Return False if the person leaves instead. Raise `MissingModel` if no model is chosen.
        """
        if (earlier := await asyncio.to_thread(preface.earlier)) is not None:
            from bridle.tui.screens.sessions import Picker

            picker = Picker(earlier, workspace=earlier.workspace, escape="leaves bridle")
            chosen = await self.app.push_screen_wait(picker)
            await earlier.close()
            if chosen is None:
                return False
            preface.resume(chosen)
        try:
            if (theme := await asyncio.to_thread(preface.theme)) != "auto":
                from bridle.tui.theme import theme_name

                self.app.theme = theme_name(theme, os.environ)
            if (folder := await asyncio.to_thread(preface.untrusted)) is not None:
                from bridle.tui.screens.onboarding import about_folder

                self._remarks.append(await about_folder(preface, folder, self._ask))
        except AgentError as error:  # it does not count, and the rest goes on
            self._remarks.append(_told(error))
        try:
            if (lacking := await asyncio.to_thread(preface.lacking)) is not None:
                from bridle.tui.screens.onboarding import about_model

                self._remarks.append(await about_model(preface, lacking, self._ask))
        except MissingModel:
            raise
        except AgentError as error:
            self._remarks.append(_told(error))
        return True

    async def _ask(self, dialog: "Dialog[Any]") -> Any:
        return await self.app.push_screen_wait(dialog)

    async def settle_in(self) -> None:
        """The house is open: what is worth a line, and the user's own commands."""
        if self.house is None or self.following is None:
            return
        await self.following.came.wait()
        for remark in (*self._remarks, *self.house.remarks()):
            if remark:
                self.tell(remark)
        self._remarks.clear()
        await self.look_for_commands()

    async def _files(self, query: str) -> Sequence[str]:
        return () if self.house is None else await self.house.files(query)

    async def _arguments(self, command: str) -> Sequence[tuple[str, str]]:
        if self.house is None:
            return ()
        named = await (self.house.models() if command == "model" else self.house.agents())
        return [(one.name, one.label) for one in named if not one.why_not]

    @property
    def interaction(self) -> "ScreenInteraction":
        """This screen, as commands know it."""
        if self._interaction is None:
            from bridle.tui.slash.screen import ScreenInteraction

            self._interaction = ScreenInteraction(self)
        return self._interaction

    async def obey(self, line: str) -> None:
        """A command."""
        from bridle.tui.slash.screen import run_screen_command

        if command_is_new(line):
            await self.look_for_commands()
        await run_screen_command(self.interaction, line)
        self.draw_soon()

    def on_composer_editor_wanted(self, event: Composer.EditorWanted) -> None:
        """The person's editor on what is typed."""
        event.stop()
        self.run_worker(self._edit(), group="obeying")

    async def _edit(self) -> None:
        try:
            await self.interaction.edit("")
        except AgentError as error:
            self.complain(error)

    def on_composer_search_wanted(self, event: Composer.SearchWanted) -> None:
        """An earlier prompt is looked for."""
        event.stop()
        self.run_worker(self._search_prompts(), group="obeying")

    async def _search_prompts(self) -> None:
        from bridle.tui.dialogs import Choose
        from bridle.tui.slash.interaction import Item

        found = self.composer.prompts.newest_first
        items = [Item(str(at), _first_line(text), _more(text)) for at, text in enumerate(found)]
        dialog: Dialog[str | None] = Choose("Earlier prompts", items, "Nothing was sent yet.")
        chosen = await self.app.push_screen_wait(dialog)
        if chosen is not None:
            self.composer.load(found[int(chosen)])


def command_is_new(line: str) -> bool:
    """May the line be a user's own command, or ask which there are?"""
    from bridle.presentation.commands import command_of, split

    found = command_of(split(line)[0])
    return found is None or found.name == "help"


def _told(error: AgentError) -> str:
    return f"{error.message}. {error.hint}".rstrip(" .")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _more(text: str) -> str:
    lines = text.strip().count("\n")
    return f"+{quantity(lines, 'line')}" if lines else ""
