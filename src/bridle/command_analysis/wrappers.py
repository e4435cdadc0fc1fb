"""Finds the command inside a command: `timeout 5 ls` runs `ls`, `sh -c 'ls'` runs its text.

`WRAPPERS` lists the programs that run another one named after their own flags and operands. Shells,
`find`, `xargs` and `git` run commands in ways of their own.
"""

import re
from fnmatch import fnmatchcase
from itertools import pairwise

from msgspec import Struct

from bridle.command_analysis.argv import Arg, flag_table, join_quoted, parse_arguments
from bridle.policy import Does

Words = tuple[Arg, ...]


class Wrapper(Struct, frozen=True, gc=False, omit_defaults=True):
    """One program that runs another.

    `does` is what the wrapper itself does. One that `reads` is harmless, and the call is judged by
    the inner command.
    """

    flags: str = ""  # as in `Program`
    skip: int = 0  # how many operands come before the command (`timeout 5`)
    does: Does = "changes"
    reason: str = ""  # why it needs approval
    takes_assignments: bool = False  # NAME=VALUE may come before the command
    text: str = ""  # flags whose value is text for a shell
    joins_words: bool = False  # the words are joined and given to a shell
    is_remote: bool = False  # it runs on another machine, and touches nothing here
    subcommand: str = ""  # it runs another program only after one of these words
    network: bool = False  # it needs the network


class InnerCommands(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a wrapper runs, and what it does itself."""

    commands: tuple[Words, ...] = ()
    texts: tuple[Arg, ...] = ()  # for a shell
    does: Does = "reads"  # what the wrapper itself does
    reason: str = ""
    is_complete: bool = True  # False: it may run more than this
    opaque: str = ""  # what was not understood
    assignments: tuple[tuple[str, str], ...] = ()
    folder: Arg | None = None  # that it runs in
    is_remote: bool = False
    only_forbids: bool = False  # the commands are guesses, or remote: rules can only forbid them
    over_limit: str = ""  # which limit it exceeds
    own: Words | None = None  # the wrapper's words without those of the commands
    # The commands may get any file of these folders whose name matches one of `names`.
    searched_folders: Words = ()
    names: tuple[str, ...] = ()
    network: bool = False


_ROOT = "runs as another user"
_ELSEWHERE = "runs a command on another machine"
_BOX = "runs a command in a container"
_PROJECT = "runs in the project's own environment"
_DOWNLOADS = "may download and run a package"

_SUDO = (
    "-A -b -E -e -H -i -K -k -l -n -P -S -s -v -B -C= -D=cd -g= -h= -p= -R= -r= -t= -T= -u= -U= "
    "--askpass --background --preserve-env? --set-home --login --non-interactive --stdin --shell "
    "--user= --group= --prompt= --host= --chdir=cd --chroot= --close-from= --command-timeout="
)
_SSH = (
    "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y -B= -b= -c= -D= -E= -e= "
    "-F= -I= -i= -J= -L= -l= -m= -O= -o= -p= -Q= -R= -S= -W= -w="
)
_DOCKER = (
    "-d -i -t --rm --init --detach --interactive --tty --privileged --read-only -e= --env= "
    "--env-file= -u= --user= -w= --workdir= -v= --volume= --mount= --name= --network= --net= -p= "
    "--publish= --entrypoint= --platform= --memory= -m= --cpus= --pid= --ipc= --cap-add= --device= "
    "--label= -l= --hostname= -h= --pull= --security-opt= --userns= --add-host= --gpus= --restart="
)

WRAPPERS: dict[str, Wrapper] = {
    "sudo": Wrapper(_SUDO, reason=_ROOT, takes_assignments=True),
    "doas": Wrapper("-n -s -L -u= -C=", reason=_ROOT),
    "pkexec": Wrapper("--user=", reason=_ROOT),
    "runuser": Wrapper("-l -m -p -u= -g= -s= -c= --command=", reason=_ROOT, text="-c --command"),
    "su": Wrapper(
        "-l -m -p -P -f - --login -c= -s= -g= -G= --command= --shell=",
        99,
        reason=_ROOT,
        text="-c --command",
    ),
    "setpriv": Wrapper("--reuid= --regid= --clear-groups --no-new-privs", reason=_ROOT),
    "chroot": Wrapper("--userspec= --groups= --skip-chdir", 1, reason="changes the root folder"),
    "unshare": Wrapper("-m -u -i -n -p -U -C -T -f -r", reason="runs in another namespace"),
    "nsenter": Wrapper("-m -u -i -n -p -U -C -T -a -t=", reason="runs in another namespace"),
    "nice": Wrapper("-n= --adjustment= -#", does="reads"),
    "ionice": Wrapper("-c= -n= -t --class= --classdata= --ignore", does="reads"),
    "taskset": Wrapper("-c --cpu-list", 1, does="reads"),
    "timeout": Wrapper(
        "-s= -k= -v --signal= --kill-after= --foreground --preserve-status --verbose",
        1,
        does="reads",
    ),
    "gtimeout": Wrapper("-s= -k= -v --signal= --kill-after= --foreground", 1, does="reads"),
    "nohup": Wrapper(does="reads"),
    "stdbuf": Wrapper("-i= -o= -e= --input= --output= --error=", does="reads"),
    "unbuffer": Wrapper("-p", does="reads"),
    "time": Wrapper("-p -v --portability --verbose", does="reads"),
    "command": Wrapper("-p", does="reads"),
    "builtin": Wrapper(does="reads"),
    "exec": Wrapper("-c -l -a=", does="reads"),
    "caffeinate": Wrapper("-d -i -m -s -u -t=", does="reads"),
    "env": Wrapper(
        "-i -0 -u= -C=cd --ignore-environment --unset= --chdir=cd --null -S= --split-string=",
        does="reads",
        takes_assignments=True,
        text="-S --split-string",
    ),
    "setsid": Wrapper("-c -w -f --wait --fork --ctty", reason="leaves the session it runs in"),
    "eval": Wrapper(does="reads", joins_words=True),
    "watch": Wrapper(
        "-b -c -C -d -e -g -t -n= -q= --beep --color --differences? --errexit --chgexit --no-title "
        "--interval=",
        does="reads",
        joins_words=True,
    ),
    "busybox": Wrapper(reason="runs a program of its own under that name"),
    "toybox": Wrapper(reason="runs a program of its own under that name"),
    "strace": Wrapper(
        "-f -ff -c -C -t -tt -T -y -q -v -x -e= -o=write -s= -p= -u= -E=",
        reason="traces another program",
    ),
    "ltrace": Wrapper("-f -c -C -S -e= -o=write -p= -u=", reason="traces another program"),
    "gdb": Wrapper("--args -q -batch --batch -ex= -x=", reason="runs a program in a debugger"),
    "valgrind": Wrapper(
        "-q -v --leak-check= --error-exitcode= --tool=",
        does="builds",
        reason="runs a program of the workspace",
    ),
    "perf": Wrapper("-o=write -g -e= -p=", 1, reason="traces another program"),
    "flock": Wrapper(
        "-n -x -s -u -w= -c= -E= --nonblock --timeout= --command=",
        1,
        reason="takes a lock",
        text="-c --command",
    ),
    "script": Wrapper(
        "-a -q -f -e -c= --command= --quiet --flush --return",
        99,
        reason="records a session",
        text="-c --command",
    ),
    "parallel": Wrapper(
        "-j= -k -X -0 -n= -N= --jobs= --bar --dry-run --will-cite -a=",
        reason="runs commands that it reads",
        joins_words=True,
    ),
    "systemd-run": Wrapper(
        "--user --scope --pty -t -p= --unit= --wait --collect -q", reason="runs a service"
    ),
    "firejail": Wrapper("--net= --quiet", reason="runs in a sandbox of its own"),
    "faketime": Wrapper("-f", 1, reason="changes the clock of a program"),
    "chronic": Wrapper("-v -e", does="reads"),
    "rlwrap": Wrapper(reason="runs another program"),
    "entr": Wrapper("-a -c -d -n -p -r -s -x -z", reason="runs a command on every change"),
    "xvfb-run": Wrapper("-a -s= -n= -e=", reason="runs another program"),
    "ssh": Wrapper(_SSH, 1, reason=_ELSEWHERE, joins_words=True, is_remote=True, network=True),
    "mosh": Wrapper("", 1, reason=_ELSEWHERE, joins_words=True, is_remote=True, network=True),
    "docker": Wrapper(_DOCKER, 1, reason=_BOX, is_remote=True, subcommand="exec run"),
    "podman": Wrapper(_DOCKER, 1, reason=_BOX, is_remote=True, subcommand="exec run"),
    "nerdctl": Wrapper(_DOCKER, 1, reason=_BOX, is_remote=True, subcommand="exec run"),
    "kubectl": Wrapper(
        "-i -t -it -n= -c= --namespace= --container= --stdin --tty",
        1,
        reason=_ELSEWHERE,
        is_remote=True,
        network=True,
        subcommand="exec",
    ),
    "uv": Wrapper(
        "-q -v --frozen --locked --offline --no-sync --all-extras --extra= --group= "
        "--project=cd --directory=cd --python= -p=",
        does="builds",
        reason=_PROJECT,
        subcommand="run",
    ),
    "poetry": Wrapper("-q -v -n", does="builds", reason=_PROJECT, subcommand="run"),
    "pipenv": Wrapper("", does="builds", reason=_PROJECT, subcommand="run"),
    "pdm": Wrapper("-s", does="builds", reason=_PROJECT, subcommand="run"),
    "rye": Wrapper("", does="builds", reason=_PROJECT, subcommand="run"),
    "bundle": Wrapper("", does="builds", reason=_PROJECT, subcommand="exec"),
    "conda": Wrapper("-n= -p= --no-capture-output", reason=_PROJECT, subcommand="run"),
    "direnv": Wrapper("", 1, reason="loads an environment", subcommand="exec"),
    "mise": Wrapper("", reason="loads an environment", subcommand="exec x"),
    "npx": Wrapper(
        "-y -q --yes --no-install --no -p= --package= -c= --call=",
        reason=_DOWNLOADS,
        text="-c --call",
        network=True,
    ),
    "bunx": Wrapper("", reason=_DOWNLOADS, network=True),
    "pnpx": Wrapper("", reason=_DOWNLOADS, network=True),
    "uvx": Wrapper("--from= --with= -p= --python= -q", reason=_DOWNLOADS, network=True),
    "pipx": Wrapper("--spec=", reason=_DOWNLOADS, subcommand="run", network=True),
    "nix-shell": Wrapper(
        "-p= --run= --command= --pure", 99, reason="loads an environment", text="--run --command"
    ),
}

SHELLS = frozenset(
    {"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh", "rbash"}
)
_PARSED_SHELLS = frozenset({"sh", "bash", "dash", "rbash"})  # they have the syntax that we parse
INTERPRETERS = SHELLS | {
    *("python", "python2", "python3", "pypy", "pypy3", "perl", "ruby", "node", "nodejs"),
    *("deno", "bun", "php", "lua", "luajit", "Rscript", "osascript", "pwsh", "powershell"),
    *("tclsh", "expect", "guile", "julia", "groovy", "scala", "irb", "ghci", "ocaml"),
    *("elixir", "erl", "sqlite3", "psql", "mysql", "m4", "gawk", "ed", "ex", "vi", "vim"),
    *("nvim", "emacs"),
}


_EXEC_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_IN_FOLDER_OF_MATCH = frozenset({"-execdir", "-okdir"})  # which may contain programs
_NAMES = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_MAX_COMMANDS = 64  # the numbers of commands, names and folders multiplied
# Words that exclude hardly any file: `find . -type f -delete` empties the folder.
_NO_TESTS = frozenset(
    {
        *("-print", "-print0", "-depth", "-xdev", "-mount", "-follow", "-daystart", "-d"),
        *("-type", "-mindepth", "-maxdepth"),
    }
)
_UNBOUNDED = frozenset({"-L", "-follow", "-regex", "-iregex"})  # follows links, or matches anything
# Names of credential files. A pattern that matches one may be searching for it.
_CREDENTIAL_NAMES = (
    *(".env", ".env.local", "id_rsa", "id_ed25519", "x.pem", "x.key", "credentials", ".netrc"),
    *(".npmrc", ".pypirc"),
)


def _unwrap_find(args: list[Arg]) -> InnerCommands | None:
    """Return what `find` runs or deletes, None if it only looks."""
    texts = [arg.text for arg in args]
    if "-delete" not in texts and _EXEC_ACTIONS.isdisjoint(texts):
        return None
    starts = _start_folders(args)
    inner, own = _split_actions(args)
    names, has_tests = _name_patterns(own)
    if len(starts) * max(1, len(names)) * max(1, len(inner)) > _MAX_COMMANDS:
        return InnerCommands(over_limit="find runs too many commands in too many folders")
    targets = _possible_matches(starts, names, has_tests=has_tests)
    commands = tuple(_with_target(words, target) for words in inner for target in targets)
    deletes = "-delete" in [arg.text for arg in own]
    if deletes:
        commands += tuple((Arg("rm"), Arg("-r"), target) for target in targets)
    own = tuple(arg for arg in own if arg.text != "-delete")
    is_clear = (
        not deletes
        and _UNBOUNDED.isdisjoint(texts)
        and not any("[" in name for name in names)
        and all(word.text == "{}" or "{}" not in word.text for words in inner for word in words)
        and not any(_is_git(words) for words in inner)
        and _IN_FOLDER_OF_MATCH.isdisjoint(texts)
    )
    reason = "" if is_clear else "runs a command on files"
    return InnerCommands(
        commands,
        does="reads" if is_clear else "changes",
        reason="deletes what it finds" if deletes else reason,
        is_complete=is_clear,
        only_forbids=deletes,
        own=own,
        searched_folders=starts,
        names=names,
    )


def _is_git(words: Words) -> bool:
    """Return whether a command is git, which may run what a folder's repository configures."""
    return any(word.text.rpartition("/")[2].lower() == "git" for word in words)


def _start_folders(args: list[Arg]) -> Words:
    """Return the folders in which it starts to search."""
    folders = []
    for arg in args:
        if arg.text in ("-H", "-L", "-P"):
            continue
        if arg.text[:1] in ("-", "(", "!", ")", ","):
            break
        folders.append(arg)
    return tuple(folders) or (Arg("."),)


def _split_actions(args: list[Arg]) -> tuple[list[Words], Words]:
    """Return the commands of its actions, and all other words."""
    inner: list[Words] = []
    own: list[Arg] = []
    index = 0
    while index < len(args):
        if args[index].text not in _EXEC_ACTIONS:
            own.append(args[index])
            index += 1
            continue
        end = next((i for i in range(index + 1, len(args)) if _ends_action(args, i)), len(args))
        inner.append(tuple(args[index + 1 : end]))
        index = end + 1
    return inner, tuple(own)


def _ends_action(args: list[Arg], index: int) -> bool:
    text = args[index].text
    return text == ";" or (text == "+" and args[index - 1].text == "{}")


def _name_patterns(own: Words) -> tuple[tuple[str, ...], bool]:
    """Return the patterns for names, and whether there is any test.

    With alternatives (`-o`) or negations any name may match, so no pattern counts.
    """
    texts = [arg.text for arg in own]
    pairs = list(pairwise(texts))
    names = tuple(value.rpartition("/")[2] for flag, value in pairs if flag in _NAMES)
    has_tests = any(t.startswith("-") and t not in _NO_TESTS and t != "-delete" for t in texts)
    if not {"-o", "-or", "!", "-not", ","}.isdisjoint(texts):
        is_certain = {"!", "-not", ","}.isdisjoint(texts) and texts.count("-o") < len(names)
        return (names if is_certain else ()), has_tests
    return names, has_tests


def _possible_matches(starts: Words, names: tuple[str, ...], *, has_tests: bool) -> Words:
    """Return what `{}` may stand for: a start folder if there are no tests, else a file in it."""
    matches: list[Arg] = []
    for start in starts:
        base = start.text.rstrip("/") or "/"
        if not has_tests:
            matches.append(start)
            continue
        files = [name.replace("*", "{}").replace("?", "x") for name in names] or ["{}"]
        files += [
            credential_name
            for credential_name in _CREDENTIAL_NAMES
            for name in names
            if _is_searched_for(credential_name, name)
        ]
        matches += [Arg(f"{base}/{name}", start.known) for name in dict.fromkeys(files)]
    return tuple(matches)


def _is_searched_for(credential_name: str, pattern: str) -> bool:
    """Return whether a pattern may be searching for this name, and not for nearly everything."""
    letters = sum(character.isalnum() for character in pattern)
    return letters >= 2 and fnmatchcase(credential_name, pattern.lower())


def _with_target(words: Words, target: Arg) -> Words:
    """Return the command with a file in place of `{}`."""
    return tuple(
        Arg(word.text.replace("{}", target.text), word.known and target.known, target.pattern)
        if "{}" in word.text
        else word
        for word in words
    )


_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL).fullmatch
_SHELL_LETTERS = frozenset("celuxv")
_SHELL_OPTIONS = frozenset({"pipefail", "errexit", "nounset", "xtrace", "noglob", "noclobber"})
_BASH_ONLY = re.compile(
    r"\$'|&>|\|&|\[\[|<\(|>\(|<<<|\$\"|\bfunction\b|\bsource\b|\{[^{}]*[,.]|\[\^"
)
_MAX_GUESSES = 4  # at where the inner command begins, after a flag that is not known


def unwrap(name: str, args: list[Arg]) -> InnerCommands | None:
    """Return the commands that a command runs, None if it runs none. `args` follow its name."""
    if name in SHELLS:
        return _unwrap_shell(name, args)
    if name == "xargs":
        return _unwrap_xargs(args)
    if name in ("find", "gfind"):
        return _unwrap_find(args)
    if name == "git":
        return _unwrap_git(args)
    if name in ("fd", "fdfind"):
        return _unwrap_fd(args)
    if name == "trap" and len(args) > 1:
        reason = "sets what runs on a signal"
        return InnerCommands(texts=(args[0],), does="changes", reason=reason, is_complete=False)
    wrapper = WRAPPERS.get(name)
    return _unwrap_program(name, wrapper, args) if wrapper is not None else None


def _unwrap_program(name: str, wrapper: Wrapper, args: list[Arg]) -> InnerCommands | None:
    if wrapper.subcommand:
        names = wrapper.subcommand.split()
        index = next((i for i, arg in enumerate(args) if arg.text in names), None)
        if index is None or any(not arg.text.startswith("-") for arg in args[:index]):
            return None
        args = args[index + 1 :]
    if name == "command" and args and args[0].text in ("-v", "-V", "-pv", "-pV"):
        return None
    arguments = parse_arguments(args, flag_table(wrapper.flags), stop=wrapper.skip < 90)
    assignments: tuple[tuple[str, str], ...] = ()
    operands = arguments.operands
    if wrapper.takes_assignments:
        assignments, operands = _split_assignments(operands)
    inner = tuple(operands[wrapper.skip :])
    texts = tuple(f.value for f in arguments.flags if f.value and f.name in wrapper.text.split())
    if not inner and not texts and not arguments.unknown_flag:
        return None
    if wrapper.joins_words and inner:
        texts = (*texts, _join_words(inner, in_bash=name == "eval"))
        inner = ()
    commands: tuple[Words, ...] = (inner,) if inner else ()
    opaque = "how env splits its words is not certain" if texts and name == "env" else ""
    if arguments.unknown_flag:
        opaque = f"{name} {arguments.unknown_flag[:60]} is not understood"
        commands = _guesses(arguments.operands)
    folder = next((f.value for f in arguments.flags if f.kind == "=cd"), None)
    if name == "npx" and arguments.has("--no-install --no"):
        wrapper = WRAPPERS["bundle"]  # it runs only what the project has installed
    return InnerCommands(
        commands,
        texts,
        does=wrapper.does,
        reason=wrapper.reason,
        is_complete=not opaque and not wrapper.is_remote,
        opaque=opaque,
        assignments=assignments,
        folder=folder,
        is_remote=wrapper.is_remote,
        only_forbids=bool(opaque) or wrapper.is_remote,
        network=wrapper.network,
    )


def _guesses(operands: list[Arg]) -> tuple[Words, ...]:
    """Return what the inner command may be: it begins with one of the first operands."""
    return tuple(tuple(operands[i:]) for i in range(min(_MAX_GUESSES, len(operands))))


def _join_words(words: Words, *, in_bash: bool) -> Arg:
    """Join words to one text for a shell. It is not known if a word comes from a pattern."""
    is_clear = all(word.known and not word.pattern for word in words)
    is_clear = is_clear and (in_bash or not any(_BASH_ONLY.search(word.text) for word in words))
    if is_clear:
        return Arg(" ".join(word.text for word in words))
    return Arg(" ".join(dict.fromkeys(word.pattern or word.text for word in words)), False)


def _split_assignments(operands: list[Arg]) -> tuple[tuple[tuple[str, str], ...], list[Arg]]:
    """Return each NAME=VALUE before the command, and the rest."""
    assignments: list[tuple[str, str]] = []
    for index, operand in enumerate(operands):
        match = _ASSIGNMENT(operand.text)
        if match is None:
            return tuple(assignments), operands[index:]
        assignments.append((match[1], match[2]))
    return tuple(assignments), []


def _unwrap_shell(name: str, args: list[Arg]) -> InnerCommands | None:
    """Return the text of `bash -euo pipefail -c 'text'`; without `-c` a shell runs a script."""
    is_clear, index, has_command = True, 0, False
    while (
        index < len(args)
        and args[index].text[:1] in ("-", "+")
        and args[index].text not in ("-", "--")
    ):
        text = args[index].text
        index += 1
        if text.startswith("--"):
            is_clear = False
            continue
        letters = text[1:]
        has_command = has_command or "c" in letters
        if letters.endswith("o") and index < len(args):
            is_clear = is_clear and args[index].text in _SHELL_OPTIONS
            index, letters = index + 1, letters[:-1]
        is_clear = is_clear and set(letters) <= _SHELL_LETTERS
    if index < len(args) and args[index].text == "--":
        index += 1
    if not has_command or index >= len(args):
        return None
    inner = args[index]
    if not is_clear or name not in _PARSED_SHELLS:
        return InnerCommands(
            texts=(inner,), is_complete=False, opaque=f"how {name} reads this is not certain"
        )
    if name != "bash" and _BASH_ONLY.search(inner.text):
        return InnerCommands(
            texts=(inner,), is_complete=False, opaque=f"{name} may not read this as bash does"
        )
    return InnerCommands(texts=(inner,))


_XARGS = (
    "-0 -r -t -a=read -d= -E= -I= -i? -L= -l? -n= -P= -s= -x -p -e? --null --no-run-if-empty "
    "--verbose --arg-file=read --delimiter= --max-args= --max-procs= --max-lines? --replace? "
    "--max-chars= --exit --interactive"
)


def _unwrap_xargs(args: list[Arg]) -> InnerCommands | None:
    """Return the command of `xargs`, which is not complete: xargs adds the words that it reads."""
    arguments = parse_arguments(args, flag_table(_XARGS), stop=True)
    if not arguments.operands:
        return None
    commands = _guesses(arguments.operands)
    program = join_quoted([arguments.operands[0].text])[:60]
    return InnerCommands(
        commands if arguments.unknown_flag else commands[:1],
        does="changes",
        is_complete=False,
        reason=f"xargs runs {program} with words that it reads",
    )


def _unwrap_git(args: list[Arg]) -> InnerCommands | None:
    """Return the aliases that `-c` defines, and what runs at every step, as in `bisect run`."""
    texts = [arg.text for arg in args]
    inner = [Arg(arg.text.partition("=!")[2], arg.known) for arg in args if "=!" in arg.text]
    for index, text in enumerate(texts[:-1]):
        if text in ("-x", "--exec", "--tree-filter", "--index-filter", "foreach"):
            inner.append(args[index + 1])
        elif text == "run" and "bisect" in texts:
            inner.append(Arg(join_quoted(texts[index + 1 :])))
            break
    if not inner:
        return None
    return InnerCommands(
        texts=tuple(inner),
        does="changes",
        is_complete=False,
        reason="git runs other programs",
        own=tuple(args),
    )


def _unwrap_fd(args: list[Arg]) -> InnerCommands | None:
    flags = ("-x", "-X", "--exec", "--exec-batch")
    index = next((i for i, arg in enumerate(args) if arg.text.split("=")[0] in flags), None)
    if index is None:
        return None
    return InnerCommands(
        (tuple(args[index + 1 :]),),
        does="changes",
        is_complete=False,
        reason="runs a command on every file",
    )
