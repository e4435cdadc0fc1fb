"""What could come next on a command line of bridle: commands, options, or a parameter's values.

Walks the same table of commands that the program obeys, loads only the command that was named, and
runs nothing. A line that cannot be understood has no next word, and no error either.
"""

from collections.abc import Iterator

import click

from bridle.cli.command_group import LazyGroup
from bridle.cli.completion_values import Candidate, candidates, fitting


def next_words(root: click.Group, words: list[str]) -> list[Candidate]:
    """What the last of these words may become. They are the words after `bridle`, as typed."""
    given = _joined(words) or [""]
    found = _after(root, given)
    if given[0].startswith("-") and "chat" in root.list_commands(click.Context(root)):
        found += _after(root, ["chat", *given])  # options without a command are the screen's
    return list(dict.fromkeys(found))


def _after(root: click.Group, words: list[str]) -> list[Candidate]:
    *before, start = words
    line = _Line(root)
    for word in before:
        if not line.take(word):
            return []
    return line.offers(start)


def _joined(words: list[str]) -> list[str]:
    """Bash splits `--mode=plan` into three words; the option and its value are meant."""
    found: list[str] = []
    for at, word in enumerate(words):
        if word == "=" and found and found[-1].startswith("--"):
            if at == len(words) - 1:
                found.append("")
            continue
        found.append(word)
    return found


class _Line:
    """A command line as far as it was read: which command, how many arguments, what is awaited."""

    def __init__(self, root: click.Group) -> None:
        self._command: click.Command = root
        self._context = click.Context(root, resilient_parsing=True)
        self._awaited: click.Option | None = None  # its value comes next
        self._arguments = 0
        self._only_arguments = False  # after `--`

    def take(self, word: str) -> bool:
        """Read a whole word; False where the line leads nowhere."""
        if self._awaited is not None:
            self._awaited = None
        elif word == "--" and not self._only_arguments:
            self._only_arguments = True
        elif word.startswith("-") and len(word) > 1 and not self._only_arguments:
            option = self._option(word.partition("=")[0])
            if option is not None and "=" not in word and _takes_value(option):
                self._awaited = option
            return option is not None or not isinstance(self._command, click.Group)
        elif isinstance(self._command, click.Group):
            return self._enter(word)
        else:
            self._arguments += 1
        return True

    def offers(self, start: str) -> list[Candidate]:
        """What a word that begins so may become."""
        if self._awaited is not None:
            return candidates(self._awaited, start)
        if start.startswith("-") and not self._only_arguments:
            return self._options(start)
        if isinstance(self._command, click.Group):
            return fitting(self._commands(self._command), start)
        argument = self._argument()
        return [] if argument is None else candidates(argument, start)

    def _enter(self, name: str) -> bool:
        group = self._command
        assert isinstance(group, click.Group)
        found = group.get_command(self._context, name)
        if found is None:
            return False
        self._context = click.Context(
            found, parent=self._context, info_name=name, resilient_parsing=True
        )
        self._command = found
        return True

    def _commands(self, group: click.Group) -> Iterator[Candidate]:
        if isinstance(group, LazyGroup):
            yield from (Candidate(name, about) for name, (_, about) in group.table.items())
            return
        for name in group.list_commands(self._context):
            found = group.get_command(self._context, name)
            if found is not None and not found.hidden:
                yield Candidate(name, found.get_short_help_str(60))

    def _options(self, start: str) -> list[Candidate]:
        name, is_given, value = start.partition("=")
        option = self._option(name)
        if is_given:
            found = [] if option is None else candidates(option, value)
            return [
                one._replace(value=f"{name}={one.value}") for one in found if one.value[0] != ":"
            ]
        return fitting(self._flags(), start)

    def _flags(self) -> Iterator[Candidate]:
        for param in self._command.get_params(self._context):
            if isinstance(param, click.Option) and not param.hidden:
                for name in (*param.opts, *param.secondary_opts):
                    if name.startswith("--"):
                        yield Candidate(name, param.help or "")

    def _option(self, name: str) -> click.Option | None:
        for param in self._command.get_params(self._context):
            if isinstance(param, click.Option) and name in (*param.opts, *param.secondary_opts):
                return param
        return None

    def _argument(self) -> click.Argument | None:
        left = self._arguments
        for param in self._command.params:
            if isinstance(param, click.Argument):
                if param.nargs < 0 or left < param.nargs:
                    return param
                left -= param.nargs
        return None


def _takes_value(option: click.Option) -> bool:
    """One whose value may be left out takes the next word only by `=`, but for `--resume`."""
    needed = option.flag_value in (None, _UNSET) or option.name == "resume"
    return not option.is_flag and not option.count and needed


_UNSET = click.Option(["--x"]).flag_value
