"""Find out what a command line would do, for the gate.

`analyze` parses the line, finds the commands inside of commands, follows `cd`, and looks up what
each program does. It is pure and never raises. What it does not understand, it says; and it still
looks in there for what is forbidden.
"""

import re
from posixpath import join, normpath

from msgspec.structs import replace

from bridle.command_analysis import floor, programs
from bridle.command_analysis.argv import Arg, command_text, flag_table, parse_arguments
from bridle.command_analysis.effects import Effect, effect_of
from bridle.command_analysis.findings import CommandAnalysis, Findings
from bridle.command_analysis.parser import parse
from bridle.command_analysis.paths import (
    PathAccess,
    check_word_paths,
    note_search,
    search_folder,
    shorten,
)
from bridle.command_analysis.syntax import Redirect, Script, SimpleCommand, Word
from bridle.command_analysis.variables import (
    expand_braces,
    lines_with_values,
    reason_for_person,
    reason_to_ask,
)
from bridle.command_analysis.wrappers import SHELLS, WRAPPERS, InnerCommands, unwrap
from bridle.policy import Act, Does
from bridle.protocols.machine import Machine

# The folders in which a command may run: `cd` is followed through `&&`, `||`, `;`, subshells and
# pipes. A `cd` can fail, so there may be several folders, and the command is judged in each.

Folders = tuple[str, ...]
UNKNOWN = ""  # among the folders: it may be any other one, too
_MAX_FOLDERS = 4  # that are followed


class _FolderState:
    """The possible folders of a shell after its last command, during it, and at any time."""

    __slots__ = ("after_failure", "after_success", "current", "ever")

    def __init__(self, folders: Folders) -> None:
        self.after_success = self.after_failure = self.current = self.ever = folders


class WorkingFolders:
    """The possible folders of the shell and of every subshell of one command line."""

    def __init__(self, machine: Machine, folders: Folders) -> None:
        self._machine = machine
        self._states: dict[tuple[int, ...], _FolderState] = {(): _FolderState(folders)}

    def folders_for(self, command: SimpleCommand) -> Folders:
        """Return the folders in which a command may run."""
        state = self._states.get(command.scope)
        if state is not None:
            return _next_folders(state, command.follows)
        folders = _next_folders(self._parent(command.scope), command.follows)
        self._states[command.scope] = _FolderState(folders)
        return folders

    def change(self, command: SimpleCommand, targets: Folders | None) -> None:
        """Note that a command changed the folder to one of `targets`, or to an unknown one."""
        state = self._states[command.scope]
        if targets is None:
            state.after_success = state.after_failure = state.current = state.ever = (UNKNOWN,)
            return
        stays = command.piped or command.follows == "||"
        state.after_success = _union(targets, state.after_success) if stays else targets
        state.ever = _union(state.ever, targets)

    def final(self) -> Folders:
        """Return the folders of the shell itself at the end, if nothing failed."""
        return self._states[()].after_success

    def after_cd(self, folder: str, path: str) -> Folders:
        """Return the folders that a `cd` may lead to: with links followed, and without."""
        unresolved = normpath(join(folder, path))
        place = self._machine.place(path, folder)
        real = join(self._machine.root, place.path) if place.inside else place.path
        return _union((normpath(real),), (unresolved,))

    def _parent(self, scope: tuple[int, ...]) -> _FolderState:
        while scope not in self._states:
            scope = scope[:-1]
        return self._states[scope]


def _next_folders(state: _FolderState, follows: str) -> Folders:
    """Return the folders of the next command, and update the state for those after it."""
    folders = _possible_folders(state, follows)
    if follows == "|":  # the first command of the pipe has updated the state
        return folders
    skipped = {"&&": state.after_failure, "||": state.after_success}.get(follows, folders)
    state.current = folders
    state.after_success = folders if follows == "&&" else _union(folders, skipped)
    state.after_failure = folders if follows == "||" else _union(folders, skipped)
    return folders


def _possible_folders(state: _FolderState, follows: str) -> Folders:
    if follows == "&&":
        return state.after_success
    if follows == "||":
        return state.after_failure
    if follows == "|":
        return state.current
    if follows == "&":
        return state.ever
    return _union(state.after_success, state.after_failure)


def _union(first: Folders, second: Folders) -> Folders:
    """Return the folders of both, or UNKNOWN if they are too many."""
    if first == second:
        return first
    folders = tuple(dict.fromkeys(first + second))
    return folders if len(folders) <= _MAX_FOLDERS else (UNKNOWN,)


# Judging.

SHELL = ("shell",)
_MAX_DEPTH = 12  # programs inside one another
_MAX_PROGRAMS = 600  # of one line, counted once for each folder and each guess
_MAX_NAMES = 2048  # that the patterns of one line may match
_RANK: dict[Does, int] = {"reads": 0, "edits": 1, "builds": 2, "changes": 3}
_UNKNOWN_FOLDER = "the folder in which it runs is not known"
_FOLDER_CHANGERS = frozenset(
    {"pushd", "popd", "source", ".", "eval", "builtin", "command", "time", "exec"}
)
_ECHO_PROGRAMS = frozenset({"echo", "printf"})
_BUILTIN_PREFIXES = frozenset({"command", "builtin"})  # they still run a builtin


def analyze(command: str, cwd: str, machine: Machine) -> CommandAnalysis:
    """Return what a command line would do in a folder."""
    script = parse(command)
    if script.over_limit:
        return CommandAnalysis(floor=script.over_limit, cwd=cwd)
    findings = Findings()
    if cwd != machine.root and (reason := _reason_outside(cwd, machine)):
        findings.add_act(Act(("read",), cwd, "changes", reason, is_path=True))
    line_judge = _LineJudge(machine, findings)
    folders = line_judge.judge_script(script, command, (cwd,), 0)
    line_judge.judge_with_values(script, command, cwd)
    floor.check_whole_line(command, findings)
    findings.add_spelling(command)
    return findings.to_judgement(folders[0] if len(folders) == 1 and folders[0] else cwd)


def _reason_outside(cwd: str, machine: Machine) -> str:
    """Say why a folder asks: a command sees the folder that it runs in, even without a path."""
    place = machine.place(cwd, machine.root)
    return "" if place.inside or place.temporary else "it runs outside the workspace"


class _LineJudge:
    """Judges one command line.

    `is_guess`: it is a guess at what another line is with the values of its variables.
    """

    def __init__(self, machine: Machine, findings: Findings, *, is_guess: bool = False) -> None:
        self._is_guess = is_guess
        self._machine = machine
        self._findings = findings
        self._piped_from = ""  # the program before the pipe
        self._piped_words: list[Arg] = []  # what it writes into the pipe, if that is known
        self._last_command: list[Arg] = []
        self._programs_left = _MAX_PROGRAMS
        self._names_left = _MAX_NAMES

    def judge_script(self, script: Script, text: str, folders: Folders, depth: int) -> Folders:
        """Judge every command of a script. Return the possible folders at the end."""
        if script.opaque:
            self._findings.add_doubt(script.opaque)
            if floor.is_bomb(text):  # in a line that is understood, it would be inside of quotes
                self._findings.forbid("it starts itself over and over")
        working_folders = WorkingFolders(self._machine, folders)
        outer = self._piped_from, self._piped_words
        for command in script.commands:
            folders = working_folders.folders_for(command)
            self._connect_pipe(command, outer)
            for folder in folders:
                self._judge_simple(command, folder, depth, several=len(folders) > 1)
            if self._findings.floor and (script.opaque or self._is_guess):
                break  # it never runs, and the rest is a guess
            self._follow_cd(command, folders, working_folders)
        self._piped_from, self._piped_words = outer
        return working_folders.final()

    def judge_with_values(self, script: Script, text: str, folder: str) -> None:
        """Judge what the line is with the values of its variables, only to forbid it."""
        if not script.opaque or self._is_guess or self._findings.floor:
            return
        floor.check_loop(text, self._findings)
        for guess in lines_with_values(text):
            guessed_script = parse(guess)
            if guessed_script.over_limit:
                continue
            findings = Findings()
            findings.places = self._findings.places
            line_judge = _LineJudge(self._machine, findings, is_guess=True)
            line_judge.judge_script(guessed_script, guess, (folder,), 1)
            if findings.guard:
                self._findings.require_person(findings.guard)
            if findings.floor:
                self._findings.forbid(findings.floor)
                return

    def _connect_pipe(self, command: SimpleCommand, outer: tuple[str, list[Arg]]) -> None:
        """Note what the command before the pipe is and writes, if there is one."""
        if command.follows != "|":
            self._piped_from, self._piped_words = outer
            return
        name = self._last_command[0].text.rpartition("/")[2] if self._last_command else "?"
        if name not in ("tee", "cat", "sudo") or not self._piped_from:
            self._piped_from = name
        args = self._last_command[1:]
        self._piped_words = args if name in _ECHO_PROGRAMS else []
        if name == "ls" and any(arg.text.startswith("-") and "d" in arg.text for arg in args):
            self._piped_words = [arg for arg in args if not arg.text.startswith("-")]

    def _judge_simple(
        self, command: SimpleCommand, folder: str, depth: int, *, several: bool
    ) -> None:
        if command.opaque:
            self._findings.add_doubt(command.opaque)
        if folder == UNKNOWN:
            self._findings.add_doubt(_UNKNOWN_FOLDER)
        access = PathAccess(
            self._machine, folder or self._machine.root, self._findings, several=several
        )
        for redirect in command.redirects:
            self._judge_redirect(redirect, access)
        self._judge_assignments(command.assignments)
        args = self._expand_words(command.words, access)
        self._last_command = args
        if args:
            if "xargs" in [arg.text for arg in args]:
                texts = [
                    redirect.target.text
                    for redirect in command.redirects
                    if redirect.kind == "text"
                ]
                words = [Arg(word) for text in texts for word in text.split()]
                self._piped_words = words or self._piped_words
            self._judge_command(args, access, depth)
            self._judge_input_text(command, args[0].text, access, depth)

    def _judge_redirect(self, redirect: Redirect, access: PathAccess) -> None:
        if redirect.kind in ("text", "copy"):
            return
        for arg in self._expand_words((redirect.target,), access):
            if redirect.kind != "read":
                access.add_write(arg, minor=False)
            elif reason := access.add_read(arg):
                self._findings.add_act(Act(("read",), arg.text, "changes", reason, is_path=True))

    def _judge_assignments(self, assignments: tuple[tuple[str, str], ...]) -> None:
        for name, value in assignments:
            if guard := reason_for_person(name):
                self._findings.require_person(guard)
            if reason := reason_to_ask(name, value):
                self._findings.add_act(Act(SHELL, f"{name}={value}", "changes", reason))

    def _judge_input_text(
        self, command: SimpleCommand, name: str, access: PathAccess, depth: int
    ) -> None:
        """Judge what a program reads from a here-document: for a shell that is a script."""
        words = [
            redirect.target for redirect in command.redirects if redirect.kind in ("text", "read")
        ]
        if not words:
            return
        name = name.rpartition("/")[2]
        args = [Arg(word.text, word.known) for word in words]
        floor.check_generated_text(name, args, self._findings)
        texts = [word.text for word in words]
        floor.check_script(name, programs.find(name) is not None, texts, self._findings)
        if name in SHELLS:
            for redirect in command.redirects:
                if redirect.kind == "text":
                    self._judge_text(Arg(redirect.target.text, False), access, depth + 1)

    def _expand_words(self, words: tuple[Word, ...], access: PathAccess) -> list[Arg]:
        """Return the words that the program would get."""
        args: list[Arg] = []
        for word in words:
            if not word.known:
                self._findings.add_doubt("a word in it is not known before it runs")
                args += [Arg(text, False) for text in expand_braces(word.text)]
                continue
            if not (word.globs or word.tilde):
                args.append(Arg(word.text))
                continue
            text = word.text
            if word.tilde:
                if text[1:2] not in ("", "/"):
                    self._findings.add_doubt(f"which folder {text[:40]} stands for is not known")
                    args.append(Arg(text, False))
                    continue
                text = self._machine.home + text[1:]
            args += self._expand_pattern(text, access) if word.globs else [Arg(text)]
        return args

    def _expand_pattern(self, pattern: str, access: PathAccess) -> list[Arg]:
        names = self._machine.expand(pattern, access.folder) if self._names_left > 0 else None
        self._names_left -= len(names or ()) + 10
        if names is None or self._names_left < 0:
            self._findings.add_doubt(f"what {pattern[:60]} matches is not known")
            return [Arg(pattern, False, pattern)]
        self._judge_listing(names or (pattern,), access)
        return [Arg(name, True, pattern) for name in names] or [Arg(pattern, True, pattern)]

    def _judge_listing(self, names: tuple[str, ...], access: PathAccess) -> None:
        """Judge that a pattern reads the names in a folder, whatever the program does with them."""
        for folder in {name.rpartition("/")[0] or "/" for name in names if "/" in name}:
            place = access.place(folder)
            if reason := access.check_read(place):
                self._findings.add_act(Act(("read",), place.path, "changes", reason, is_path=True))

    def _judge_command(
        self, args: list[Arg], access: PathAccess, depth: int, runner: str = ""
    ) -> None:
        """Judge one command. `runner` is the program that runs it, empty for the shell itself."""
        if not args or self._is_over_limit(depth):
            return
        text = command_text(args)
        first, rest = args[0], args[1:]
        if not first.known or first.pattern:
            self._findings.add_doubt("which program it runs is not known")
            self._findings.add_act(Act(SHELL, text, reason="which program it runs is not known"))
            floor.check_unknown_program(rest, self._machine.home, self._findings)
            return
        name, minimum = _program_name(first.text, access)
        self._check_floor(name, rest, access)
        runner = self._runner(first.text, name, runner)
        also: tuple[str, ...] = () if name == first.text else (command_text([Arg(name), *rest]),)
        if (path := _path_from_root(first.text, access)) != first.text:
            also, text = (*also, text), command_text([Arg(path), *rest])
        inner = unwrap(name, rest)
        if inner is not None:
            effect = minimum or Effect("reads")
            act = Act(SHELL, text, effect.does, effect.reason, also)
            self._judge_wrapper(inner, name, act, access)
            self._judge_inner(inner, name, access, depth, runner)
            return
        index = len(self._findings.acts)
        entry, own = programs.find_entry(name, rest)
        if entry is None:
            effect = minimum or Effect("changes", f"{name[:60]} is not a known program")
            note_search(name, rest, access)
        else:
            effect = effect_of(name, entry, list(own), access)
            if entry.subcommands and rest and rest[0].text.startswith("-"):
                operands = parse_arguments(rest, flag_table(entry.flags), stop=True).operands
                also += (command_text([Arg(name), *operands]),)
        network = effect.network
        check_word_paths(entry, own, access)
        texts = [arg.text for arg in rest if effect.does != "reads"]
        floor.check_script(name, entry is not None, texts, self._findings, self._machine.home)
        if minimum is not None and _RANK[minimum.does] > _RANK[effect.does]:
            effect = minimum
        act = Act(
            SHELL,
            text,
            effect.does,
            effect.reason,
            also,
            within=access.within,
            network=network,
        )
        self._findings.add_act(act, index)

    def _is_over_limit(self, depth: int) -> bool:
        self._programs_left -= 1
        if depth <= _MAX_DEPTH and self._programs_left >= 0:
            return False
        self._findings.forbid("too many programs run one another")
        return True

    def _check_floor(self, name: str, rest: list[Arg], access: PathAccess) -> None:
        floor.check_program(name, rest, access)
        floor.check_generated_text(name, rest, self._findings)
        if self._piped_from:
            floor.check_piped_input(name.rpartition("/")[2], rest, self._piped_from, self._findings)

    def _runner(self, word: str, name: str, runner: str) -> str:
        """Return the program that runs the commands inside of this one, empty for the shell."""
        runner = runner or (word if "/" in word else "")
        if runner and programs.is_builtin(name):
            self._findings.add_doubt(
                f"{name} is a builtin of the shell; a program with that name is not known"
            )
        return runner or ("" if name in _BUILTIN_PREFIXES else name)

    def _judge_inner(
        self, inner: InnerCommands, name: str, access: PathAccess, depth: int, runner: str
    ) -> None:
        """Judge the commands that a wrapper runs."""
        findings = self._findings
        self._judge_assignments(inner.assignments)
        access = self._inner_access(inner, access)
        only_forbids = findings.only_forbids
        findings.only_forbids = only_forbids or inner.only_forbids
        piped_words = self._piped_words if name == "xargs" else []
        for words in inner.commands:
            if inner.is_remote:
                self._judge_remote(list(words))
            else:
                self._judge_command([*words, *piped_words], access, depth + 1, runner)
        for text in inner.texts:
            if inner.is_remote:
                for command in parse(text.text).commands:
                    self._judge_remote([Arg(word.text, word.known) for word in command.words])
            else:
                self._judge_text(text, access, depth + 1)
        findings.only_forbids = only_forbids

    def _judge_wrapper(self, inner: InnerCommands, name: str, act: Act, access: PathAccess) -> None:
        """Judge what a wrapper does itself. `act` is what is known of it so far."""
        index = len(self._findings.acts)
        effect = Effect(inner.does, inner.reason)
        if inner.own is not None and (entry := programs.find(name)) is not None:
            own = effect_of(name, entry, list(inner.own), access)
            effect = own if _RANK[own.does] > _RANK[effect.does] else effect
        if _RANK[act.does] > _RANK[effect.does]:  # a program in the workspace may do anything
            effect = Effect(act.does, act.reason)
        if inner.opaque:
            self._findings.add_doubt(inner.opaque)
        if inner.over_limit:
            self._findings.forbid(inner.over_limit)
        minor = inner.is_complete and effect.does == "reads"
        network = inner.network or effect.network
        act = replace(
            act,
            does=effect.does,
            reason=effect.reason,
            minor=minor,
            within=access.within,
            network=network,
        )
        self._findings.add_act(act, index)

    def _inner_access(self, inner: InnerCommands, access: PathAccess) -> PathAccess:
        """Return the paths of the inner commands, and judge the files that they may get."""
        for folder in inner.searched_folders:
            for reason in search_folder(folder, inner.names, access, links=True):
                self._findings.add_act(Act(("read",), folder.text, "changes", reason, is_path=True))
        if inner.folder is None:
            return access
        if reason := access.add_read(inner.folder):
            self._findings.add_act(
                Act(("read",), inner.folder.text, "changes", reason, is_path=True)
            )
        if not inner.folder.known:
            self._findings.add_doubt(_UNKNOWN_FOLDER)
        path = inner.folder.text
        if not path.startswith("/"):
            path = normpath(f"{access.folder}/{path}")
        return PathAccess(self._machine, path, self._findings)

    def _judge_remote(self, args: list[Arg]) -> None:
        """Judge a command on another machine, only to forbid it."""
        if args:
            floor.check_remote_command(args[0].text, args[1:], self._findings)
            self._findings.add_act(Act(SHELL, command_text(args), minor=True))

    def _judge_text(self, arg: Arg, access: PathAccess, depth: int) -> None:
        """Judge text for a shell like a command line."""
        if self._is_over_limit(depth):
            return
        text = arg.text
        if not arg.known:
            self._findings.add_doubt("it runs text that is not known beforehand")
            if text[:1] == text[-1:] == '"':
                text = text[1:-1]
        script = parse(text)
        if script.over_limit:
            self._findings.forbid(script.over_limit)
        self.judge_script(script, text, (access.folder,), depth)
        self.judge_with_values(script, text, access.folder)

    def _follow_cd(
        self, command: SimpleCommand, folders: Folders, working_folders: WorkingFolders
    ) -> None:
        """Note where later commands run if this one changes the folder."""
        if not command.words or command.words[0].text not in _MAY_CHANGE_FOLDER:
            return
        if _may_change_folder(command.argv):
            working_folders.change(command, None)
        elif command.words[0].text == "cd":
            working_folders.change(command, self._cd_targets(command, folders, working_folders))

    def _cd_targets(
        self, command: SimpleCommand, folders: Folders, working_folders: WorkingFolders
    ) -> Folders | None:
        """Return the folders that a `cd` may lead to, None if that is not known."""
        targets: list[str] = []
        for folder in folders:
            access = PathAccess(self._machine, folder or self._machine.root, self._findings)
            args = self._expand_words(command.words[1:], access)
            args = [arg for arg in args if arg.text not in _CD_FLAGS]
            if folder == UNKNOWN or len(args) > 1 or any(not arg.known for arg in args):
                return None
            if args and args[0].text == "-":
                return None
            path = args[0].text if args else self._machine.home
            targets += working_folders.after_cd(folder, path)
        return tuple(dict.fromkeys(targets))


def _may_change_folder(words: tuple[str, ...]) -> bool:
    """Return whether a command may change the folder, other than as a plain `cd`."""
    if words[0] in _ALWAYS_CHANGE:
        return not programs.is_activation(words[0], words[1:])
    if words[0] == "eval":
        script = parse(" ".join(words[1:]))
        is_clear = not (script.opaque or script.over_limit)
        firsts = [command.argv[0] for command in script.commands if command.argv]
        return not is_clear or not (_FOLDER_CHANGERS | {"cd"}).isdisjoint(firsts)
    return words[0] in _FOLDER_CHANGERS and not (_FOLDER_CHANGERS | {"cd"}).isdisjoint(words[1:])


_ALWAYS_CHANGE = frozenset({"pushd", "popd", "source", "."})
_MAY_CHANGE_FOLDER = _FOLDER_CHANGERS | _ALWAYS_CHANGE | {"cd", "eval"}
_CD_FLAGS = frozenset({"-P", "-L", "-e", "--"})


# The program that the first word of a command names.

_SYSTEM_FOLDERS = frozenset(
    {
        *("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"),
        *("/opt/homebrew/bin", "/opt/local/bin"),
    }
)
_INSTALL_FOLDER = re.compile(
    r"(?:.*/)?(?:\.?venv/bin|\.?env/bin|node_modules/\.bin|vendor/bin)"
).fullmatch
_BUILDERS = frozenset({"gradlew", "mvnw", "configure", "manage.py"})


def _program_name(word: str, access: PathAccess) -> tuple[str, Effect | None]:
    """Return the name of a program, and the least that it does because of where it is."""
    if "/" not in word:
        name, minimum = _name_in_lower_case(word)
        if minimum is None and access.machine.is_local_program(word):
            minimum = Effect("builds", f"runs the workspace's own {shorten(word)}")
        return name, minimum
    path = normpath(word)
    folder, _, name = path.rpartition("/")
    if folder in _SYSTEM_FOLDERS:
        return name, None
    place = access.place(word)
    access.add_program(place)
    if _INSTALL_FOLDER(folder) and _is_path_inside(path, access):
        return name, Effect("builds", f"runs {shorten(path)}, installed in the workspace")
    if place.inside and name in _BUILDERS:
        return name, Effect("builds", f"runs the workspace's own {name}")
    if place.inside:
        return word, Effect("changes", f"runs {shorten(place.path)}, a program of the workspace")
    real_folder, _, real_name = place.path.rpartition("/")
    effect = Effect("changes", f"runs {shorten(place.path)}, outside the workspace")
    return (real_name if real_folder in _SYSTEM_FOLDERS else name), effect


def _path_from_root(word: str, access: PathAccess) -> str:
    """Return a program's path relative to the root, which rules are compared with."""
    if "/" not in word or word.startswith("/") or access.folder == access.machine.root:
        return word
    place = access.place(word)
    path = place.path if place.inside else normpath(join(access.folder, word))
    path = path.removeprefix(f"{access.machine.root}/")
    return path if "/" in path else f"./{path}"


def _is_path_inside(path: str, access: PathAccess) -> bool:
    """Return whether a path is in the workspace, even if it is a link out like a venv's python."""
    return normpath(join(access.folder, path)).startswith(f"{access.machine.root}/")


def _name_in_lower_case(word: str) -> tuple[str, Effect | None]:
    """Return `rm` for `RM`, as on a file system that ignores case, and that this needs approval."""
    lower = word.lower()
    if (
        lower == word
        or programs.find(word) is not None
        or (programs.find(lower) is None and lower not in WRAPPERS)
    ):
        return word, None
    return lower, Effect("changes", f"{shorten(word)} may be {shorten(lower)}")
