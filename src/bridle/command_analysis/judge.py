"""What a command line would do, for the gate: parsed, unwrapped, followed, looked up, judged.

Pure and never raises, whatever the text. What is not understood is said to be so, and what is
forbidden is seen in it all the same, as far as it can be seen.
"""

import re
from posixpath import join, normpath

from msgspec.structs import replace

from bridle.command_analysis import floor, programs
from bridle.command_analysis.argv import Arg, flag_table, retold, sort_words
from bridle.command_analysis.effects import Effect, effect_of
from bridle.command_analysis.findings import Notes, Understood
from bridle.command_analysis.parser import parse
from bridle.command_analysis.paths import Reach, note_named_paths, note_search, shown, sweep
from bridle.command_analysis.syntax import Redirect, Script, Simple, Word
from bridle.command_analysis.variables import fillings, spread, why_guarded, why_not
from bridle.command_analysis.wrappers import SHELLS, WRAPPERS, Wrapped, unwrap
from bridle.policy import Act, Does
from bridle.protocols.machine import Machine

# In which folders a command may run: `cd` followed through `&&`, `||`, `;`, subshells and pipes.
#
# A `cd` can fail, so there may be several; every one of them is judged. UNKNOWN among them means
# that it cannot be said. Paths are joined here by their words; where they lead is asked of the
# machine.

Folders = tuple[str, ...]
UNKNOWN = ""
_MOST = 4  # folders that are worth following


class _State:
    """A shell's folders: if the last command succeeded, if it failed, in which it ran, and ever."""

    __slots__ = ("bad", "ever", "good", "ran")

    def __init__(self, folders: Folders) -> None:
        self.good = self.bad = self.ran = self.ever = folders


class Whereabouts:
    """The folders of every (sub)shell of one command line."""

    def __init__(self, machine: Machine, folders: Folders) -> None:
        self._machine = machine
        self._states: dict[tuple[int, ...], _State] = {(): _State(folders)}

    def before(self, simple: Simple) -> Folders:
        """In which folders that command may run."""
        state = self._states.get(simple.scope)
        if state is not None:
            return _ran(state, simple.follows)
        folders = _ran(self._parent(simple.scope), simple.follows)
        self._states[simple.scope] = _State(folders)
        return folders

    def moved(self, simple: Simple, targets: Folders | None) -> None:
        """That command changed the folder: to these, or, with None, nobody knows where."""
        state = self._states[simple.scope]
        if targets is None:
            state.good = state.bad = state.ran = state.ever = (UNKNOWN,)
            return
        stays = simple.piped or simple.follows == "||"
        state.good = _both(targets, state.good) if stays else targets
        state.ever = _both(state.ever, targets)

    def last(self) -> Folders:
        """Where the shell itself stands in the end, if nothing failed."""
        return self._states[()].good

    def to(self, folder: str, path: str) -> Folders:
        """Where a `cd` leads from a folder: by its words, and with links followed."""
        worded = normpath(join(folder, path))
        place = self._machine.place(path, folder)
        real = join(self._machine.root, place.path) if place.inside else place.path
        return _both((normpath(real),), (worded,))

    def _parent(self, scope: tuple[int, ...]) -> _State:
        while scope not in self._states:
            scope = scope[:-1]
        return self._states[scope]


def _ran(state: _State, follows: str) -> Folders:
    """Where the next command runs, and what that leaves open about those after it."""
    folders = _choose(state, follows)
    if follows == "|":  # its pipe has been counted
        return folders
    skipped = state.bad if follows == "&&" else state.good if follows == "||" else folders
    state.ran = folders
    state.good = folders if follows == "&&" else _both(folders, skipped)
    state.bad = folders if follows == "||" else _both(folders, skipped)
    return folders


def _choose(state: _State, follows: str) -> Folders:
    if follows == "&&":
        return state.good
    if follows == "||":
        return state.bad
    if follows == "|":
        return state.ran
    if follows == "&":
        return state.ever
    return _both(state.good, state.bad)


def _both(one: Folders, other: Folders) -> Folders:
    """The folders of both; UNKNOWN where there are too many to follow."""
    if one == other:
        return one
    found = tuple(dict.fromkeys(one + other))
    return found if len(found) <= _MOST else (UNKNOWN,)


SHELL = ("shell",)
_DEEPEST = 12  # programs inside one another
_PROGRAMS = 600  # that one line may run, every folder and every guess counted
_NAMES = 2048  # that the patterns of one line may stand for
_RANK: dict[Does, int] = {"reads": 0, "edits": 1, "builds": 2, "changes": 3}
_MOVERS = frozenset({"pushd", "popd", "source", ".", "eval", "builtin", "command", "time", "exec"})
_ECHOES = frozenset({"echo", "printf"})
_SHELLS_OWN = frozenset({"command", "builtin"})  # after them a built-in is still one


def judge(command: str, cwd: str, machine: Machine) -> Understood:
    """What that command line would do in that folder."""
    script = parse(command)
    if script.refused:
        return Understood(floor=script.refused, cwd=cwd)
    notes = Notes()
    if cwd != machine.root and (reason := _stray(cwd, machine)):
        notes.act(Act(("read",), cwd, "changes", reason, is_path=True))
    judging = _Judging(machine, notes)
    where = judging.script(script, command, (cwd,), 0)
    judging.look_filled(script, command, cwd)
    floor.look_whole(command, notes)
    notes.spelled_so(command)
    return notes.told(where[0] if len(where) == 1 and where[0] else cwd)


def _stray(cwd: str, machine: Machine) -> str:
    """A command without a path still sees the folder that it runs in."""
    place = machine.place(cwd, machine.root)
    return "" if place.inside or place.temporary else "it runs outside the workspace"


class _Judging:
    """One command line on its way through; knows what the last command was that fed this one."""

    def __init__(self, machine: Machine, notes: Notes, *, filled: bool = False) -> None:
        self._filled = filled  # a guess at what the line is with its variables put in
        self._machine = machine
        self._notes = notes
        self._source = ""  # the program at the other end of the pipe
        self._fed: list[Arg] = []  # the words that come through it, where they are known
        self._last: list[Arg] = []
        self._left = _PROGRAMS
        self._names = _NAMES

    def script(self, script: Script, text: str, folders: Folders, depth: int) -> Folders:
        """Judge every command in it; where the shell stands at the end."""
        if script.opaque:
            self._notes.unclear(script.opaque)
            if floor.is_bomb(text):  # in a line that is understood it would be a quoted word
                self._notes.forbid("it starts itself over and over")
        where = Whereabouts(self._machine, folders)
        outer = self._source, self._fed
        for simple in script.commands:
            at = where.before(simple)
            self._connect(simple, outer)
            for folder in at:
                self._simple(simple, folder, depth, several=len(at) > 1)
            if self._notes.floor and (script.opaque or self._filled):
                break  # it never runs, and what else stands there is a guess
            self._follow(simple, at, where)
        self._source, self._fed = outer
        return where.last()

    def look_filled(self, script: Script, text: str, folder: str) -> None:
        """What is forbidden is forbidden with a variable in it as well."""
        if not script.opaque or self._filled or self._notes.floor:
            return
        floor.look_looped(text, self._notes)
        for guess in fillings(text):
            parsed, other = parse(guess), Notes()
            other.places = self._notes.places
            if parsed.refused:
                continue
            _Judging(self._machine, other, filled=True).script(parsed, guess, (folder,), 1)
            if other.guard:
                self._notes.guarded(other.guard)
            if other.floor:
                self._notes.forbid(other.floor)
                return

    def _connect(self, simple: Simple, outer: tuple[str, list[Arg]]) -> None:
        """What comes through the pipe, if there is one."""
        if simple.follows != "|":
            self._source, self._fed = outer
            return
        name = self._last[0].text.rpartition("/")[2] if self._last else "?"
        if name not in ("tee", "cat", "sudo") or not self._source:
            self._source = name
        told = self._last[1:] if name in _ECHOES else []
        if name == "ls" and any(arg.text.startswith("-") and "d" in arg.text for arg in self._last):
            told = [arg for arg in self._last[1:] if not arg.text.startswith("-")]
        self._fed = told

    def _simple(self, simple: Simple, folder: str, depth: int, *, several: bool) -> None:
        if simple.opaque:
            self._notes.unclear(simple.opaque)
        if folder == UNKNOWN:
            self._notes.unclear("the folder in which it runs cannot be known")
        reach = Reach(self._machine, folder or self._machine.root, self._notes, several=several)
        for redirect in simple.redirects:
            self._redirect(redirect, reach)
        self._assign(simple.assignments)
        args = self._expanded(simple.words, reach)
        self._last = args
        if args:
            if "xargs" in [arg.text for arg in args]:
                texts = [one.target.text for one in simple.redirects if one.kind == "text"]
                self._fed = [Arg(word) for text in texts for word in text.split()] or self._fed
            self._command(args, reach, depth)
            self._heredoc(simple, args[0].text, reach, depth)

    def _redirect(self, redirect: Redirect, reach: Reach) -> None:
        if redirect.kind in ("text", "copy"):
            return
        for arg in self._expanded((redirect.target,), reach):
            if redirect.kind != "read":
                reach.writes(arg, minor=False)
            elif reason := reach.reads(arg):
                self._notes.act(Act(("read",), arg.text, "changes", reason, is_path=True))

    def _assign(self, assignments: tuple[tuple[str, str], ...]) -> None:
        for name, value in assignments:
            if guard := why_guarded(name):
                self._notes.guarded(guard)
            if reason := why_not(name, value):
                self._notes.act(Act(SHELL, f"{name}={value}", "changes", reason))

    def _heredoc(self, simple: Simple, name: str, reach: Reach, depth: int) -> None:
        """Text that a shell is given to read is a script."""
        fed = [one.target for one in simple.redirects if one.kind in ("text", "read")]
        if not fed:
            return
        name = name.rpartition("/")[2]
        floor.look_made(name, [Arg(word.text, word.known) for word in fed], self._notes)
        floor.look_script(
            name, programs.find(name) is not None, [word.text for word in fed], self._notes
        )
        if name in SHELLS:
            for redirect in simple.redirects:
                if redirect.kind == "text":
                    self._text(Arg(redirect.target.text, False), reach, depth + 1)

    def _expanded(self, words: tuple[Word, ...], reach: Reach) -> list[Arg]:
        """The words that the program would get."""
        found: list[Arg] = []
        for word in words:
            if not word.known:
                self._notes.unclear("a word in it is not known before it runs")
                found += [Arg(text, False) for text in spread(word.text)]
                continue
            if not (word.globs or word.tilde):
                found.append(Arg(word.text))
                continue
            text = word.text
            if word.tilde:
                if text[1:2] not in ("", "/"):
                    self._notes.unclear(f"whose folder {text[:40]} is cannot be known")
                    found.append(Arg(text, False))
                    continue
                text = self._machine.home + text[1:]
            found += self._globbed(text, reach) if word.globs else [Arg(text)]
        return found

    def _globbed(self, pattern: str, reach: Reach) -> list[Arg]:
        names = self._machine.expand(pattern, reach.folder) if self._names > 0 else None
        self._names -= len(names or ()) + 10
        if names is None or self._names < 0:
            self._notes.unclear(f"what {pattern[:60]} stands for cannot be said")
            return [Arg(pattern, False, pattern)]
        self._listed(names or (pattern,), reach)
        return [Arg(name, True, pattern) for name in names] or [Arg(pattern, True, pattern)]

    def _listed(self, names: tuple[str, ...], reach: Reach) -> None:
        """Who is given the names in a folder has read it, whatever the program does with them."""
        for folder in {name.rpartition("/")[0] or "/" for name in names if "/" in name}:
            place = reach.place(folder)
            if reason := reach.judged_read(place):
                self._notes.act(Act(("read",), place.path, "changes", reason, is_path=True))

    def _command(self, args: list[Arg], reach: Reach, depth: int, runner: str = "") -> None:
        """One command; `runner` is the program that runs it, where it is not the shell itself."""
        if not args or self._is_too_much(depth):
            return
        text = retold(args)
        first, rest = args[0], args[1:]
        if not first.known or first.pattern:
            self._notes.unclear("which program it runs cannot be known")
            self._notes.act(Act(SHELL, text, reason="which program it runs cannot be known"))
            floor.look_unknown(rest, self._machine.home, self._notes)
            return
        name, least = program_of(first.text, reach)
        self._look(name, rest, reach)
        runner = self._runner(first.text, name, runner)
        also: tuple[str, ...] = () if name == first.text else (retold([Arg(name), *rest]),)
        if (path := from_root(first.text, reach)) != first.text:
            also, text = (*also, text), retold([Arg(path), *rest])
        wrapped = unwrap(name, rest)
        if wrapped is not None:
            itself = least or Effect("reads")
            act = Act(SHELL, text, itself.does, itself.reason, also)
            self._wrapper(wrapped, name, act, reach)
            self._wrapped(wrapped, name, reach, depth, runner)
            return
        at = len(self._notes.acts)
        entry, own = programs.find_entry(name, rest)
        if entry is None:
            effect = least or Effect("changes", f"{name[:60]} is not a program that is known")
            note_search(name, rest, reach)
        else:
            effect = effect_of(name, entry, list(own), reach)
            if entry.verbs and rest and rest[0].text.startswith("-"):
                verb = sort_words(rest, flag_table(entry.flags), stop=True).operands
                also += (retold([Arg(name), *verb]),)
        network = effect.network
        note_named_paths(entry, own, reach)
        texts = [arg.text for arg in rest if effect.does != "reads"]
        floor.look_script(name, entry is not None, texts, self._notes, self._machine.home)
        if least is not None and _RANK[least.does] > _RANK[effect.does]:
            effect = least
        within = reach.within
        act = Act(SHELL, text, effect.does, effect.reason, also, within=within, network=network)
        self._notes.act(act, at)

    def _is_too_much(self, depth: int) -> bool:
        self._left -= 1
        if depth <= _DEEPEST and self._left >= 0:
            return False
        self._notes.forbid("too many programs run one another")
        return True

    def _look(self, name: str, rest: list[Arg], reach: Reach) -> None:
        floor.look(name, rest, reach)
        floor.look_made(name, rest, self._notes)
        if self._source:
            floor.look_piped(name.rpartition("/")[2], rest, self._source, self._notes)

    def _runner(self, word: str, name: str, runner: str) -> str:
        """Who runs what stands inside this command: a program, or nobody but the shell."""
        runner = runner or (word if "/" in word else "")
        if runner and programs.is_builtin(name):
            self._notes.unclear(f"{name} is the shell's own: a program of that name is not known")
        return runner or ("" if name in _SHELLS_OWN else name)

    def _wrapped(self, inside: Wrapped, name: str, reach: Reach, depth: int, runner: str) -> None:
        """What a command runs: each is an act as well."""
        notes = self._notes
        self._assign(inside.assignments)
        reach = self._inside(inside, reach)
        muted, notes.muted = notes.muted, notes.muted or inside.muted
        fed = self._fed if name == "xargs" else []
        for words in inside.commands:
            if inside.elsewhere:
                self._elsewhere(list(words))
            else:
                self._command([*words, *fed], reach, depth + 1, runner)
        for text in inside.texts:
            if inside.elsewhere:
                for simple in parse(text.text).commands:
                    self._elsewhere([Arg(word.text, word.known) for word in simple.words])
            else:
                self._text(text, reach, depth + 1)
        notes.muted = muted

    def _wrapper(self, inside: Wrapped, name: str, act: Act, reach: Reach) -> None:
        """The wrapper itself: what it does with its own words, and what is not understood of it."""
        at = len(self._notes.acts)
        effect = Effect(inside.does, inside.reason)
        if inside.own is not None and (entry := programs.find(name)) is not None:
            own = effect_of(name, entry, list(inside.own), reach)
            effect = own if _RANK[own.does] > _RANK[effect.does] else effect
        if _RANK[act.does] > _RANK[effect.does]:  # what lies there by that name may be anything
            effect = Effect(act.does, act.reason)
        if inside.opaque:
            self._notes.unclear(inside.opaque)
        if inside.refused:
            self._notes.forbid(inside.refused)
        minor = inside.sure and effect.does == "reads"
        also, within = act.also, reach.within
        found = Act(SHELL, act.subject, effect.does, effect.reason, also, False, minor, within)
        if inside.network or effect.network:
            found = replace(found, network=True)
        self._notes.act(found, at)

    def _inside(self, inside: Wrapped, reach: Reach) -> Reach:
        """Where the inner command runs, and which files it may be handed."""
        for folder in inside.sweeps:
            for reason in sweep(folder, inside.names, reach, links=True):
                self._notes.act(Act(("read",), folder.text, "changes", reason, is_path=True))
        if inside.folder is None:
            return reach
        if reason := reach.reads(inside.folder):
            self._notes.act(Act(("read",), inside.folder.text, "changes", reason, is_path=True))
        if not inside.folder.known:
            self._notes.unclear("the folder in which it runs cannot be known")
        return Reach(
            self._machine,
            normpath(f"{reach.folder}/{inside.folder.text}")
            if not inside.folder.text.startswith("/")
            else inside.folder.text,
            self._notes,
        )

    def _elsewhere(self, args: list[Arg]) -> None:
        """A command on another machine: only there to be forbidden."""
        if args:
            floor.look_elsewhere(args[0].text, args[1:], self._notes)
            self._notes.act(Act(SHELL, retold(args), minor=True))

    def _text(self, arg: Arg, reach: Reach, depth: int) -> None:
        """Text for a shell, judged like a command line of its own."""
        if self._is_too_much(depth):
            return
        text = arg.text
        if not arg.known:
            self._notes.unclear("it runs text that is not known before")
            if text[:1] == text[-1:] == '"':
                text = text[1:-1]
        script = parse(text)
        if script.refused:
            self._notes.forbid(script.refused)
        self.script(script, text, (reach.folder,), depth)
        self.look_filled(script, text, reach.folder)

    def _follow(self, simple: Simple, at: Folders, where: Whereabouts) -> None:
        """After a `cd` later commands run elsewhere."""
        if not simple.words or simple.words[0].text not in _MOVING:
            return
        if _may_move(simple.argv):
            where.moved(simple, None)
        elif simple.words[0].text == "cd":
            where.moved(simple, self._target(simple, at, where))

    def _target(self, simple: Simple, at: Folders, where: Whereabouts) -> Folders | None:
        """Where a `cd` leads, or None where that cannot be said."""
        found: list[str] = []
        for folder in at:
            reach = Reach(self._machine, folder or self._machine.root, self._notes)
            args = [a for a in self._expanded(simple.words[1:], reach) if a.text not in _CD_FLAGS]
            if folder == UNKNOWN or len(args) > 1 or any(not a.known for a in args):
                return None
            if args and args[0].text == "-":
                return None
            found += where.to(folder, args[0].text if args else self._machine.home)
        return tuple(dict.fromkeys(found))


def _may_move(words: tuple[str, ...]) -> bool:
    """May that command change the folder, other than as a plain `cd`?"""
    if words[0] in _GOING:
        return not programs.is_activation(words[0], words[1:])
    if words[0] == "eval":
        inner = parse(" ".join(words[1:]))
        plain = not (inner.opaque or inner.refused)
        firsts = [simple.argv[0] for simple in inner.commands if simple.argv]
        return not plain or not (_MOVERS | {"cd"}).isdisjoint(firsts)
    return words[0] in _MOVERS and not (_MOVERS | {"cd"}).isdisjoint(words[1:])


_GOING = frozenset({"pushd", "popd", "source", "."})
_MOVING = _MOVERS | _GOING | {"cd", "eval"}
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


def program_of(word: str, reach: Reach) -> tuple[str, Effect | None]:
    """The program's name, and what it does at least, going by where it lies."""
    if "/" not in word:
        name, least = _in_any_case(word)
        if least is None and reach.machine.is_local_program(word):
            least = Effect("builds", f"runs the workspace's own {shown(word)}")
        return name, least
    path = normpath(word)
    folder, _, name = path.rpartition("/")
    if folder in _STANDARD:
        return name, None
    place = reach.place(word)
    reach.runs_program(place)
    if _LOCAL(folder) and _is_named_inside(path, reach):
        return name, Effect("builds", f"runs {shown(path)}, installed in the workspace")
    if place.inside and name in _BUILDERS:
        return name, Effect("builds", f"runs the workspace's own {name}")
    if place.inside:
        return word, Effect("changes", f"runs {shown(place.path)}, a program of the workspace")
    real, _, named = place.path.rpartition("/")
    runs = Effect("changes", f"runs {shown(place.path)}, outside the workspace")
    return (named if real in _STANDARD else name), runs


def from_root(word: str, reach: Reach) -> str:
    """A program's relative path as it is from the root, for what is allowed in one folder only."""
    if "/" not in word or word.startswith("/") or reach.folder == reach.machine.root:
        return word
    place = reach.place(word)
    named = place.path if place.inside else normpath(join(reach.folder, word))
    path = named.removeprefix(f"{reach.machine.root}/")
    return path if "/" in path else f"./{path}"


def _is_named_inside(path: str, reach: Reach) -> bool:
    """A venv's python is a link that leads out; it is the workspace's own choice all the same."""
    return normpath(join(reach.folder, path)).startswith(f"{reach.machine.root}/")


def _in_any_case(word: str) -> tuple[str, Effect | None]:
    """Where names are case-blind, `RM` is `rm`; nothing is allowed for such a spelling."""
    low = word.lower()
    if (
        low == word
        or programs.find(word) is not None
        or (programs.find(low) is None and low not in WRAPPERS)
    ):
        return word, None
    return low, Effect("changes", f"{shown(word)} may be {shown(low)}")
