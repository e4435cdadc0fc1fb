"""What a command line would do, for the gate: parsed, unwrapped, followed, looked up, judged.

Pure and never raises, whatever the text. What is not understood is said to be so, and what is
forbidden is seen in it all the same, as far as it can be seen.
"""

import re
from posixpath import join, normpath

from msgspec.structs import replace

from bridle.command_analysis import floor, programs
from bridle.command_analysis.argv import Arg, command_text, flag_table, parse_arguments
from bridle.command_analysis.effects import Effect, effect_of
from bridle.command_analysis.findings import Findings, Judgement
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

# In which folders a command may run: `cd` followed through `&&`, `||`, `;`, subshells and pipes.
#
# A `cd` can fail, so there may be several; every one of them is judged. UNKNOWN among them means
# that it cannot be said. Paths are joined here by their words; where they lead is asked of the
# machine.

Folders = tuple[str, ...]
UNKNOWN = ""
_MAX_FOLDERS = 4  # folders that are worth following


class _FolderState:
    """A shell's folders: if the last command succeeded, if it failed, in which it ran, and ever."""

    __slots__ = ("after_failure", "after_success", "current", "ever")

    def __init__(self, folders: Folders) -> None:
        self.after_success = self.after_failure = self.current = self.ever = folders


class WorkingFolders:
    """The folders of every (sub)shell of one command line."""

    def __init__(self, machine: Machine, folders: Folders) -> None:
        self._machine = machine
        self._states: dict[tuple[int, ...], _FolderState] = {(): _FolderState(folders)}

    def folders_for(self, simple: SimpleCommand) -> Folders:
        """In which folders that command may run."""
        state = self._states.get(simple.scope)
        if state is not None:
            return _next_folders(state, simple.follows)
        folders = _next_folders(self._parent(simple.scope), simple.follows)
        self._states[simple.scope] = _FolderState(folders)
        return folders

    def change(self, simple: SimpleCommand, targets: Folders | None) -> None:
        """That command changed the folder: to these, or, with None, nobody knows where."""
        state = self._states[simple.scope]
        if targets is None:
            state.after_success = state.after_failure = state.current = state.ever = (UNKNOWN,)
            return
        stays = simple.piped or simple.follows == "||"
        state.after_success = _union(targets, state.after_success) if stays else targets
        state.ever = _union(state.ever, targets)

    def final(self) -> Folders:
        """Where the shell itself stands in the end, if nothing failed."""
        return self._states[()].after_success

    def after_cd(self, folder: str, path: str) -> Folders:
        """Where a `cd` leads from a folder: by its words, and with links followed."""
        worded = normpath(join(folder, path))
        place = self._machine.place(path, folder)
        real = join(self._machine.root, place.path) if place.inside else place.path
        return _union((normpath(real),), (worded,))

    def _parent(self, scope: tuple[int, ...]) -> _FolderState:
        while scope not in self._states:
            scope = scope[:-1]
        return self._states[scope]


def _next_folders(state: _FolderState, follows: str) -> Folders:
    """Where the next command runs, and what that leaves open about those after it."""
    folders = _possible_folders(state, follows)
    if follows == "|":  # its pipe has been counted
        return folders
    skipped = (
        state.after_failure
        if follows == "&&"
        else state.after_success
        if follows == "||"
        else folders
    )
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


def _union(one: Folders, other: Folders) -> Folders:
    """The folders of both; UNKNOWN where there are too many to follow."""
    if one == other:
        return one
    found = tuple(dict.fromkeys(one + other))
    return found if len(found) <= _MAX_FOLDERS else (UNKNOWN,)


SHELL = ("shell",)
_MAX_DEPTH = 12  # programs inside one another
_MAX_PROGRAMS = 600  # that one line may run, every folder and every guess counted
_MAX_NAMES = 2048  # that the patterns of one line may stand for
_RANK: dict[Does, int] = {"reads": 0, "edits": 1, "builds": 2, "changes": 3}
_MOVERS = frozenset({"pushd", "popd", "source", ".", "eval", "builtin", "command", "time", "exec"})
_ECHO_PROGRAMS = frozenset({"echo", "printf"})
_BUILTIN_PREFIXES = frozenset({"command", "builtin"})  # after them a built-in is still one


def judge(command: str, cwd: str, machine: Machine) -> Judgement:
    """What that command line would do in that folder."""
    script = parse(command)
    if script.over_limit:
        return Judgement(floor=script.over_limit, cwd=cwd)
    findings = Findings()
    if cwd != machine.root and (reason := _reason_outside(cwd, machine)):
        findings.add_act(Act(("read",), cwd, "changes", reason, is_path=True))
    line_judge = _LineJudge(machine, findings)
    working_folders = line_judge.judge_script(script, command, (cwd,), 0)
    line_judge.judge_with_values(script, command, cwd)
    floor.check_whole_line(command, findings)
    findings.add_spelling(command)
    return findings.to_judgement(
        working_folders[0] if len(working_folders) == 1 and working_folders[0] else cwd
    )


def _reason_outside(cwd: str, machine: Machine) -> str:
    """A command without a path still sees the folder that it runs in."""
    place = machine.place(cwd, machine.root)
    return "" if place.inside or place.temporary else "it runs outside the workspace"


class _LineJudge:
    """One command line on its way through; knows what the last command was that fed this one."""

    def __init__(self, machine: Machine, findings: Findings, *, is_guess: bool = False) -> None:
        self._is_guess = is_guess  # a guess at what the line is with its variables put in
        self._machine = machine
        self._findings = findings
        self._piped_from = ""  # the program at the other end of the pipe
        self._piped_words: list[Arg] = []  # the words that come through it, where they are known
        self._last_command: list[Arg] = []
        self._programs_left = _MAX_PROGRAMS
        self._names_left = _MAX_NAMES

    def judge_script(self, script: Script, text: str, folders: Folders, depth: int) -> Folders:
        """Judge every command in it; where the shell stands at the end."""
        if script.opaque:
            self._findings.add_doubt(script.opaque)
            if floor.is_bomb(text):  # in a line that is understood it would be a quoted word
                self._findings.forbid("it starts itself over and over")
        working_folders = WorkingFolders(self._machine, folders)
        outer = self._piped_from, self._piped_words
        for simple in script.commands:
            at = working_folders.folders_for(simple)
            self._connect_pipe(simple, outer)
            for folder in at:
                self._judge_simple(simple, folder, depth, several=len(at) > 1)
            if self._findings.floor and (script.opaque or self._is_guess):
                break  # it never runs, and what else stands there is a guess
            self._follow_cd(simple, at, working_folders)
        self._piped_from, self._piped_words = outer
        return working_folders.final()

    def judge_with_values(self, script: Script, text: str, folder: str) -> None:
        """What is forbidden is forbidden with a variable in it as well."""
        if not script.opaque or self._is_guess or self._findings.floor:
            return
        floor.check_loop(text, self._findings)
        for guess in lines_with_values(text):
            parsed, other = parse(guess), Findings()
            other.places = self._findings.places
            if parsed.over_limit:
                continue
            _LineJudge(self._machine, other, is_guess=True).judge_script(
                parsed, guess, (folder,), 1
            )
            if other.guard:
                self._findings.require_person(other.guard)
            if other.floor:
                self._findings.forbid(other.floor)
                return

    def _connect_pipe(self, simple: SimpleCommand, outer: tuple[str, list[Arg]]) -> None:
        """What comes through the pipe, if there is one."""
        if simple.follows != "|":
            self._piped_from, self._piped_words = outer
            return
        name = self._last_command[0].text.rpartition("/")[2] if self._last_command else "?"
        if name not in ("tee", "cat", "sudo") or not self._piped_from:
            self._piped_from = name
        told = self._last_command[1:] if name in _ECHO_PROGRAMS else []
        if name == "ls" and any(
            arg.text.startswith("-") and "d" in arg.text for arg in self._last_command
        ):
            told = [arg for arg in self._last_command[1:] if not arg.text.startswith("-")]
        self._piped_words = told

    def _judge_simple(
        self, simple: SimpleCommand, folder: str, depth: int, *, several: bool
    ) -> None:
        if simple.opaque:
            self._findings.add_doubt(simple.opaque)
        if folder == UNKNOWN:
            self._findings.add_doubt("the folder in which it runs cannot be known")
        access = PathAccess(
            self._machine, folder or self._machine.root, self._findings, several=several
        )
        for redirect in simple.redirects:
            self._judge_redirect(redirect, access)
        self._judge_assignments(simple.assignments)
        args = self._expand_words(simple.words, access)
        self._last_command = args
        if args:
            if "xargs" in [arg.text for arg in args]:
                texts = [one.target.text for one in simple.redirects if one.kind == "text"]
                self._piped_words = [
                    Arg(word) for text in texts for word in text.split()
                ] or self._piped_words
            self._judge_command(args, access, depth)
            self._judge_input_text(simple, args[0].text, access, depth)

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
        self, simple: SimpleCommand, name: str, access: PathAccess, depth: int
    ) -> None:
        """Text that a shell is given to read is a script."""
        piped_words = [one.target for one in simple.redirects if one.kind in ("text", "read")]
        if not piped_words:
            return
        name = name.rpartition("/")[2]
        floor.check_generated_text(
            name, [Arg(word.text, word.known) for word in piped_words], self._findings
        )
        floor.check_script(
            name,
            programs.find(name) is not None,
            [word.text for word in piped_words],
            self._findings,
        )
        if name in SHELLS:
            for redirect in simple.redirects:
                if redirect.kind == "text":
                    self._judge_text(Arg(redirect.target.text, False), access, depth + 1)

    def _expand_words(self, words: tuple[Word, ...], access: PathAccess) -> list[Arg]:
        """The words that the program would get."""
        found: list[Arg] = []
        for word in words:
            if not word.known:
                self._findings.add_doubt("a word in it is not known before it runs")
                found += [Arg(text, False) for text in expand_braces(word.text)]
                continue
            if not (word.globs or word.tilde):
                found.append(Arg(word.text))
                continue
            text = word.text
            if word.tilde:
                if text[1:2] not in ("", "/"):
                    self._findings.add_doubt(f"whose folder {text[:40]} is cannot be known")
                    found.append(Arg(text, False))
                    continue
                text = self._machine.home + text[1:]
            found += self._expand_pattern(text, access) if word.globs else [Arg(text)]
        return found

    def _expand_pattern(self, pattern: str, access: PathAccess) -> list[Arg]:
        names = self._machine.expand(pattern, access.folder) if self._names_left > 0 else None
        self._names_left -= len(names or ()) + 10
        if names is None or self._names_left < 0:
            self._findings.add_doubt(f"what {pattern[:60]} stands for cannot be said")
            return [Arg(pattern, False, pattern)]
        self._judge_listing(names or (pattern,), access)
        return [Arg(name, True, pattern) for name in names] or [Arg(pattern, True, pattern)]

    def _judge_listing(self, names: tuple[str, ...], access: PathAccess) -> None:
        """Who is given the names in a folder has read it, whatever the program does with them."""
        for folder in {name.rpartition("/")[0] or "/" for name in names if "/" in name}:
            place = access.place(folder)
            if reason := access.check_read(place):
                self._findings.add_act(Act(("read",), place.path, "changes", reason, is_path=True))

    def _judge_command(
        self, args: list[Arg], access: PathAccess, depth: int, runner: str = ""
    ) -> None:
        """One command; `runner` is the program that runs it, where it is not the shell itself."""
        if not args or self._is_over_limit(depth):
            return
        text = command_text(args)
        first, rest = args[0], args[1:]
        if not first.known or first.pattern:
            self._findings.add_doubt("which program it runs cannot be known")
            self._findings.add_act(Act(SHELL, text, reason="which program it runs cannot be known"))
            floor.check_unknown_program(rest, self._machine.home, self._findings)
            return
        name, minimum = _program_name(first.text, access)
        self._check_floor(name, rest, access)
        runner = self._runner(first.text, name, runner)
        also: tuple[str, ...] = () if name == first.text else (command_text([Arg(name), *rest]),)
        if (path := _path_from_root(first.text, access)) != first.text:
            also, text = (*also, text), command_text([Arg(path), *rest])
        wrapped = unwrap(name, rest)
        if wrapped is not None:
            itself = minimum or Effect("reads")
            act = Act(SHELL, text, itself.does, itself.reason, also)
            self._judge_wrapper(wrapped, name, act, access)
            self._judge_inner(wrapped, name, access, depth, runner)
            return
        at = len(self._findings.acts)
        entry, own = programs.find_entry(name, rest)
        if entry is None:
            effect = minimum or Effect("changes", f"{name[:60]} is not a program that is known")
            note_search(name, rest, access)
        else:
            effect = effect_of(name, entry, list(own), access)
            if entry.subcommands and rest and rest[0].text.startswith("-"):
                verb = parse_arguments(rest, flag_table(entry.flags), stop=True).operands
                also += (command_text([Arg(name), *verb]),)
        network = effect.network
        check_word_paths(entry, own, access)
        texts = [arg.text for arg in rest if effect.does != "reads"]
        floor.check_script(name, entry is not None, texts, self._findings, self._machine.home)
        if minimum is not None and _RANK[minimum.does] > _RANK[effect.does]:
            effect = minimum
        within = access.within
        act = Act(SHELL, text, effect.does, effect.reason, also, within=within, network=network)
        self._findings.add_act(act, at)

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
        """Who runs what stands inside this command: a program, or nobody but the shell."""
        runner = runner or (word if "/" in word else "")
        if runner and programs.is_builtin(name):
            self._findings.add_doubt(
                f"{name} is the shell's own: a program of that name is not known"
            )
        return runner or ("" if name in _BUILTIN_PREFIXES else name)

    def _judge_inner(
        self, inner: InnerCommands, name: str, access: PathAccess, depth: int, runner: str
    ) -> None:
        """What a command runs: each is an act as well."""
        findings = self._findings
        self._judge_assignments(inner.assignments)
        access = self._inner_access(inner, access)
        only_forbids, findings.only_forbids = (
            findings.only_forbids,
            findings.only_forbids or inner.only_forbids,
        )
        piped_words = self._piped_words if name == "xargs" else []
        for words in inner.commands:
            if inner.is_remote:
                self._judge_remote(list(words))
            else:
                self._judge_command([*words, *piped_words], access, depth + 1, runner)
        for text in inner.texts:
            if inner.is_remote:
                for simple in parse(text.text).commands:
                    self._judge_remote([Arg(word.text, word.known) for word in simple.words])
            else:
                self._judge_text(text, access, depth + 1)
        findings.only_forbids = only_forbids

    def _judge_wrapper(self, inner: InnerCommands, name: str, act: Act, access: PathAccess) -> None:
        """The wrapper itself: what it does with its own words, and what is not understood of it."""
        at = len(self._findings.acts)
        effect = Effect(inner.does, inner.reason)
        if inner.own is not None and (entry := programs.find(name)) is not None:
            own = effect_of(name, entry, list(inner.own), access)
            effect = own if _RANK[own.does] > _RANK[effect.does] else effect
        if _RANK[act.does] > _RANK[effect.does]:  # what lies there by that name may be anything
            effect = Effect(act.does, act.reason)
        if inner.opaque:
            self._findings.add_doubt(inner.opaque)
        if inner.over_limit:
            self._findings.forbid(inner.over_limit)
        minor = inner.is_complete and effect.does == "reads"
        also, within = act.also, access.within
        found = Act(SHELL, act.subject, effect.does, effect.reason, also, False, minor, within)
        if inner.network or effect.network:
            found = replace(found, network=True)
        self._findings.add_act(found, at)

    def _inner_access(self, inner: InnerCommands, access: PathAccess) -> PathAccess:
        """Where the inner command runs, and which files it may be handed."""
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
            self._findings.add_doubt("the folder in which it runs cannot be known")
        return PathAccess(
            self._machine,
            normpath(f"{access.folder}/{inner.folder.text}")
            if not inner.folder.text.startswith("/")
            else inner.folder.text,
            self._findings,
        )

    def _judge_remote(self, args: list[Arg]) -> None:
        """A command on another machine: only there to be forbidden."""
        if args:
            floor.check_remote_command(args[0].text, args[1:], self._findings)
            self._findings.add_act(Act(SHELL, command_text(args), minor=True))

    def _judge_text(self, arg: Arg, access: PathAccess, depth: int) -> None:
        """Text for a shell, judged like a command line of its own."""
        if self._is_over_limit(depth):
            return
        text = arg.text
        if not arg.known:
            self._findings.add_doubt("it runs text that is not known before")
            if text[:1] == text[-1:] == '"':
                text = text[1:-1]
        script = parse(text)
        if script.over_limit:
            self._findings.forbid(script.over_limit)
        self.judge_script(script, text, (access.folder,), depth)
        self.judge_with_values(script, text, access.folder)

    def _follow_cd(
        self, simple: SimpleCommand, at: Folders, working_folders: WorkingFolders
    ) -> None:
        """After a `cd` later commands run elsewhere."""
        if not simple.words or simple.words[0].text not in _MAY_CHANGE_FOLDER:
            return
        if _may_move(simple.argv):
            working_folders.change(simple, None)
        elif simple.words[0].text == "cd":
            working_folders.change(simple, self._cd_targets(simple, at, working_folders))

    def _cd_targets(
        self, simple: SimpleCommand, at: Folders, working_folders: WorkingFolders
    ) -> Folders | None:
        """Where a `cd` leads, or None where that cannot be said."""
        found: list[str] = []
        for folder in at:
            access = PathAccess(self._machine, folder or self._machine.root, self._findings)
            args = [
                a for a in self._expand_words(simple.words[1:], access) if a.text not in _CD_FLAGS
            ]
            if folder == UNKNOWN or len(args) > 1 or any(not a.known for a in args):
                return None
            if args and args[0].text == "-":
                return None
            found += working_folders.after_cd(folder, args[0].text if args else self._machine.home)
        return tuple(dict.fromkeys(found))


def _may_move(words: tuple[str, ...]) -> bool:
    """May that command change the folder, other than as a plain `cd`?"""
    if words[0] in _FOLDER_CHANGERS:
        return not programs.is_activation(words[0], words[1:])
    if words[0] == "eval":
        inner = parse(" ".join(words[1:]))
        plain = not (inner.opaque or inner.over_limit)
        firsts = [simple.argv[0] for simple in inner.commands if simple.argv]
        return not plain or not (_MOVERS | {"cd"}).isdisjoint(firsts)
    return words[0] in _MOVERS and not (_MOVERS | {"cd"}).isdisjoint(words[1:])


_FOLDER_CHANGERS = frozenset({"pushd", "popd", "source", "."})
_MAY_CHANGE_FOLDER = _MOVERS | _FOLDER_CHANGERS | {"cd", "eval"}
_CD_FLAGS = frozenset({"-P", "-L", "-e", "--"})


# Which program the first word of a command names


_STANDARD = frozenset(
    {
        "/bin",
        "/usr/bin",
        "/usr/local/bin",
        "/sbin",
        "/usr/sbin",
        "/usr/local/sbin",
        "/opt/homebrew/bin",
        "/opt/local/bin",
    }
)
_LOCAL = re.compile(r"(?:.*/)?(?:\.?venv/bin|\.?env/bin|node_modules/\.bin|vendor/bin)").fullmatch
_BUILDERS = frozenset({"gradlew", "mvnw", "configure", "manage.py"})


def _program_name(word: str, access: PathAccess) -> tuple[str, Effect | None]:
    """The program's name, and what it does at least, going by where it lies."""
    if "/" not in word:
        name, minimum = _name_in_lower_case(word)
        if minimum is None and access.machine.is_local_program(word):
            minimum = Effect("builds", f"runs the workspace's own {shorten(word)}")
        return name, minimum
    path = normpath(word)
    folder, _, name = path.rpartition("/")
    if folder in _STANDARD:
        return name, None
    place = access.place(word)
    access.add_program(place)
    if _LOCAL(folder) and _is_named_inside(path, access):
        return name, Effect("builds", f"runs {shorten(path)}, installed in the workspace")
    if place.inside and name in _BUILDERS:
        return name, Effect("builds", f"runs the workspace's own {name}")
    if place.inside:
        return word, Effect("changes", f"runs {shorten(place.path)}, a program of the workspace")
    real, _, named = place.path.rpartition("/")
    runs = Effect("changes", f"runs {shorten(place.path)}, outside the workspace")
    return (named if real in _STANDARD else name), runs


def _path_from_root(word: str, access: PathAccess) -> str:
    """A program's relative path as it is from the root, for what is allowed in one folder only."""
    if "/" not in word or word.startswith("/") or access.folder == access.machine.root:
        return word
    place = access.place(word)
    named = place.path if place.inside else normpath(join(access.folder, word))
    path = named.removeprefix(f"{access.machine.root}/")
    return path if "/" in path else f"./{path}"


def _is_named_inside(path: str, access: PathAccess) -> bool:
    """A venv's python is a link that leads out; it is the workspace's own choice all the same."""
    return normpath(join(access.folder, path)).startswith(f"{access.machine.root}/")


def _name_in_lower_case(word: str) -> tuple[str, Effect | None]:
    """Where names are case-blind, `RM` is `rm`; nothing is allowed for such a spelling."""
    low = word.lower()
    if (
        low == word
        or programs.find(word) is not None
        or (programs.find(low) is None and low not in WRAPPERS)
    ):
        return word, None
    return low, Effect("changes", f"{shorten(word)} may be {shorten(low)}")
