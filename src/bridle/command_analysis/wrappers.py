"""Finds the command inside a command: `timeout 5 ls` runs `ls`, `sh -c 'ls'` runs its text.

`WRAPPERS` lists the programs that run the program named after them, with their flags and what they
change; `find -exec` is read by itself.
"""

import re
from fnmatch import fnmatchcase
from itertools import pairwise

from msgspec import Struct

from bridle.command_analysis.argv import Arg, Given, flag_table, sort_words, spelled
from bridle.policy import Does

Words = tuple[Arg, ...]


class Wrapper(Struct, frozen=True, gc=False, omit_defaults=True):
    """One such program.

    `flags` as in `program.py`. `skip`: so many operands stand before the command (`timeout 5`).
    `assigns`: NAME=VALUE may stand there. `does` is what the wrapper itself does: one that `reads`
    is harmless, and the class of the inner command passes through. `text`: flags whose value is
    text for a shell. `joined`: the words are joined and given to a shell. `elsewhere`: on another
    machine, so that nothing here is touched. `verb`: it wraps only after that word. `network`: it
    needs the network.
    """

    flags: str = ""
    skip: int = 0
    does: Does = "changes"
    reason: str = ""
    assigns: bool = False
    text: str = ""
    joined: bool = False
    elsewhere: bool = False
    verb: str = ""
    network: bool = False


class Wrapped(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a wrapper runs: commands, or text for a shell, and what it does itself.

    Not `sure`: there may be more to it. `muted`: what stands inside is a guess, or happens
    elsewhere, and is only there to be forbidden. `opaque` says what was not understood, `refused`
    which limit it is over. `folder`: it runs there. `own` are the words of the wrapper without
    those of the inner command; `sweeps` are folders which may hand the inner command any file in
    them whose name fits one of `names`.
    """

    commands: tuple[Words, ...] = ()
    texts: tuple[Arg, ...] = ()
    does: Does = "reads"
    reason: str = ""
    sure: bool = True
    opaque: str = ""
    assignments: tuple[tuple[str, str], ...] = ()
    folder: Arg | None = None
    elsewhere: bool = False
    muted: bool = False
    refused: str = ""
    own: Words | None = None
    sweeps: Words = ()
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
    "sudo": Wrapper(_SUDO, reason=_ROOT, assigns=True),
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
        assigns=True,
        text="-S --split-string",
    ),
    "setsid": Wrapper("-c -w -f --wait --fork --ctty", reason="leaves the session it runs in"),
    "eval": Wrapper(does="reads", joined=True),
    "watch": Wrapper(
        "-b -c -C -d -e -g -t -n= -q= --beep --color --differences? --errexit --chgexit --no-title "
        "--interval=",
        does="reads",
        joined=True,
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
        reason="writes down a session",
        text="-c --command",
    ),
    "parallel": Wrapper(
        "-j= -k -X -0 -n= -N= --jobs= --bar --dry-run --will-cite -a=",
        reason="runs words that it reads",
        joined=True,
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
    "ssh": Wrapper(_SSH, 1, reason=_ELSEWHERE, joined=True, elsewhere=True, network=True),
    "mosh": Wrapper("", 1, reason=_ELSEWHERE, joined=True, elsewhere=True, network=True),
    "docker": Wrapper(_DOCKER, 1, reason=_BOX, elsewhere=True, verb="exec run"),
    "podman": Wrapper(_DOCKER, 1, reason=_BOX, elsewhere=True, verb="exec run"),
    "nerdctl": Wrapper(_DOCKER, 1, reason=_BOX, elsewhere=True, verb="exec run"),
    "kubectl": Wrapper(
        "-i -t -it -n= -c= --namespace= --container= --stdin --tty",
        1,
        reason=_ELSEWHERE,
        elsewhere=True,
        network=True,
        verb="exec",
    ),
    "uv": Wrapper(
        "-q -v --frozen --locked --offline --no-sync --all-extras --extra= --group= "
        "--project=cd --directory=cd --python= -p=",
        does="builds",
        reason=_PROJECT,
        verb="run",
    ),
    "poetry": Wrapper("-q -v -n", does="builds", reason=_PROJECT, verb="run"),
    "pipenv": Wrapper("", does="builds", reason=_PROJECT, verb="run"),
    "pdm": Wrapper("-s", does="builds", reason=_PROJECT, verb="run"),
    "rye": Wrapper("", does="builds", reason=_PROJECT, verb="run"),
    "bundle": Wrapper("", does="builds", reason=_PROJECT, verb="exec"),
    "conda": Wrapper("-n= -p= --no-capture-output", reason=_PROJECT, verb="run"),
    "direnv": Wrapper("", 1, reason="loads an environment", verb="exec"),
    "mise": Wrapper("", reason="loads an environment", verb="exec x"),
    "npx": Wrapper(
        "-y -q --yes --no-install --no -p= --package= -c= --call=",
        reason=_DOWNLOADS,
        text="-c --call",
        network=True,
    ),
    "bunx": Wrapper("", reason=_DOWNLOADS, network=True),
    "pnpx": Wrapper("", reason=_DOWNLOADS, network=True),
    "uvx": Wrapper("--from= --with= -p= --python= -q", reason=_DOWNLOADS, network=True),
    "pipx": Wrapper("--spec=", reason=_DOWNLOADS, verb="run", network=True),
    "nix-shell": Wrapper(
        "-p= --run= --command= --pure", 99, reason="loads an environment", text="--run --command"
    ),
}

SHELLS = frozenset(
    {"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh", "rbash"}
)
CERTAIN_SHELLS = frozenset({"sh", "bash", "dash", "rbash"})  # the shell we parse, or less than it
INTERPRETERS = SHELLS | {
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "osascript",
    "pwsh",
    "powershell",
    "tclsh",
    "expect",
    "guile",
    "julia",
    "groovy",
    "scala",
    "irb",
    "ghci",
    "ocaml",
    "elixir",
    "erl",
    "sqlite3",
    "psql",
    "mysql",
    "m4",
    "gawk",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "emacs",
}


RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_THERE = frozenset({"-execdir", "-okdir"})  # in the folder of what was found, whose it may be
_NAMES = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_MOST = 64  # commands, names and folders, multiplied
# Words that leave nearly everything in: a `find . -type f -delete` empties the folder.
_PLAIN = frozenset(
    {
        "-print",
        "-print0",
        "-depth",
        "-xdev",
        "-mount",
        "-follow",
        "-daystart",
        "-d",
        "-type",
        "-mindepth",
        "-maxdepth",
    }
)
_LOOSE = frozenset({"-L", "-follow", "-regex", "-iregex"})  # links out, or nobody knows what
# Names that credentials have: a pattern that fits one of them may hand it on.
PROBES = (
    ".env",
    ".env.local",
    "id_rsa",
    "id_ed25519",
    "x.pem",
    "x.key",
    "credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
)


def find_inner(args: list[Arg]) -> Wrapped | None:
    """What `find` runs or deletes; nothing where it only looks."""
    texts = [arg.text for arg in args]
    if "-delete" not in texts and RUNS.isdisjoint(texts):
        return None
    starts = _starts(args)
    inner, own = _split(args)
    names, tests = _tests(own)
    if len(starts) * max(1, len(names)) * max(1, len(inner)) > _MOST:
        return Wrapped(refused="find runs too many commands in too many folders")
    targets = _targets(starts, names, tests)
    commands = tuple(_filled(words, target) for words in inner for target in targets)
    deletes = "-delete" in [arg.text for arg in own]
    if deletes:
        commands += tuple((Arg("rm"), Arg("-r"), target) for target in targets)
    own = tuple(arg for arg in own if arg.text != "-delete")
    clear = not deletes and _LOOSE.isdisjoint(texts) and not any("[" in name for name in names)
    clear = clear and all(word.text == "{}" or "{}" not in word.text for w in inner for word in w)
    clear = clear and not any(_goes_there(words) for words in inner)
    clear = clear and _THERE.isdisjoint(texts)
    return Wrapped(
        commands,
        does="reads" if clear else "changes",
        reason="deletes what it finds" if deletes else "" if clear else "runs a command on files",
        sure=clear,
        muted=deletes,
        own=own,
        sweeps=starts,
        names=names,
    )


def _goes_there(words: Words) -> bool:
    """git goes to the folder that it is given, and runs what that folder's repository says."""
    return any(word.text.rpartition("/")[2].lower() == "git" for word in words)


def _starts(args: list[Arg]) -> Words:
    """The folders in which it begins to look."""
    found = []
    for arg in args:
        if arg.text in ("-H", "-L", "-P"):
            continue
        if arg.text[:1] in ("-", "(", "!", ")", ","):
            break
        found.append(arg)
    return tuple(found) or (Arg("."),)


def _split(args: list[Arg]) -> tuple[list[Words], Words]:
    """The commands of its actions, and the words that are its own."""
    inner: list[Words] = []
    own: list[Arg] = []
    at = 0
    while at < len(args):
        if args[at].text not in RUNS:
            own.append(args[at])
            at += 1
            continue
        end = next((i for i in range(at + 1, len(args)) if _ends(args, i)), len(args))
        inner.append(tuple(args[at + 1 : end]))
        at = end + 1
    return inner, tuple(own)


def _ends(args: list[Arg], at: int) -> bool:
    return args[at].text == ";" or (args[at].text == "+" and args[at - 1].text == "{}")


def _tests(own: Words) -> tuple[tuple[str, ...], bool]:
    """The patterns for names, and whether there is any test at all.

    Alternatives (`-o`) and negations can let any name through: then no name counts.
    """
    texts = [arg.text for arg in own]
    pairs = list(pairwise(texts))
    names = tuple(value.rpartition("/")[2] for flag, value in pairs if flag in _NAMES)
    tests = any(t.startswith("-") and t not in _PLAIN and t != "-delete" for t in texts)
    if not {"-o", "-or", "!", "-not", ","}.isdisjoint(texts):
        positive = {"!", "-not", ","}.isdisjoint(texts) and texts.count("-o") < len(names)
        return (names if positive else ()), tests
    return names, tests


def _targets(starts: Words, names: tuple[str, ...], tests: bool) -> Words:
    """What `{}` may stand for: a start itself where nothing is tested, else something below it."""
    found: list[Arg] = []
    for start in starts:
        base = start.text.rstrip("/") or "/"
        if not tests:
            found.append(start)
            continue
        below = [name.replace("*", "{}").replace("?", "x") for name in names] or ["{}"]
        below += [probe for probe in PROBES for name in names if _fits(probe, name)]
        found += [Arg(f"{base}/{name}", start.known) for name in dict.fromkeys(below)]
    return tuple(found)


def _fits(probe: str, pattern: str) -> bool:
    """Is that pattern after such a name? One that fits nearly everything is after nothing."""
    letters = sum(character.isalnum() for character in pattern)
    return letters >= 2 and fnmatchcase(probe, pattern.lower())


def _filled(words: Words, target: Arg) -> Words:
    """The command with the name put in."""
    return tuple(
        Arg(word.text.replace("{}", target.text), word.known and target.known, target.pattern)
        if "{}" in word.text
        else word
        for word in words
    )


ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL).fullmatch
_SHELL_LETTERS = frozenset("celuxv")
_SHELL_OPTIONS = frozenset({"pipefail", "errexit", "nounset", "xtrace", "noglob", "noclobber"})
_BASH_ONLY = re.compile(
    r"\$'|&>|\|&|\[\[|<\(|>\(|<<<|\$\"|\bfunction\b|\bsource\b|\{[^{}]*[,.]|\[\^"
)
_GUESSES = 4  # where the inner command may begin, when a flag is strange


def unwrap(name: str, args: list[Arg]) -> Wrapped | None:
    """What a command runs inside, if it is one that does; `args` are the words after its name."""
    if name in SHELLS:
        return _shell(name, args)
    if name == "xargs":
        return _xargs(args)
    if name in ("find", "gfind"):
        return find_inner(args)
    if name == "git":
        return _git(args)
    if name in ("fd", "fdfind"):
        return _after(args, ("-x", "-X", "--exec", "--exec-batch"), "runs a command on every file")
    if name == "trap":
        return (
            Wrapped(
                texts=tuple(args[:1]),
                does="changes",
                sure=False,
                reason="sets what runs on a signal",
            )
            if len(args) > 1
            else None
        )
    wrapper = WRAPPERS.get(name)
    return _wrapper(name, wrapper, args) if wrapper is not None else None


def _wrapper(name: str, wrapper: Wrapper, args: list[Arg]) -> Wrapped | None:
    if wrapper.verb:
        found = next((i for i, arg in enumerate(args) if arg.text in wrapper.verb.split()), None)
        if found is None or any(not arg.text.startswith("-") for arg in args[:found]):
            return None
        args = args[found + 1 :]
    if name == "command" and args and args[0].text in ("-v", "-V", "-pv", "-pV"):
        return None
    given = sort_words(args, flag_table(wrapper.flags), stop=wrapper.skip < 90)
    assigned, inner = _assigned(given.operands) if wrapper.assigns else ((), given.operands)
    inner = inner[wrapper.skip :]
    texts = tuple(f.value for f in given.flags if f.value and f.name in wrapper.text.split())
    if not inner and not texts and not given.strange:
        return None
    return _built(name, wrapper, given, assigned, tuple(inner), texts)


def _built(
    name: str,
    wrapper: Wrapper,
    given: Given,
    assigned: tuple[tuple[str, str], ...],
    inner: Words,
    texts: tuple[Arg, ...],
) -> Wrapped:
    if wrapper.joined and inner:
        texts = (*texts, _joined(inner, in_bash=name == "eval"))
        inner = ()
    commands: tuple[Words, ...] = (inner,) if inner else ()
    opaque = "how env splits its words is not certain" if texts and name == "env" else ""
    if given.strange:
        opaque = f"{name} {given.strange[:60]} is not understood"
        words = tuple(given.operands)
        commands = tuple(words[i:] for i in range(min(_GUESSES, len(words))))
    folder = next((f.value for f in given.flags if f.kind == "=cd"), None)
    if name == "npx" and given.has("--no-install --no"):
        wrapper = WRAPPERS["bundle"]  # what the project has installed, and nothing else
    return Wrapped(
        commands,
        texts,
        wrapper.does,
        wrapper.reason,
        not opaque and not wrapper.elsewhere,
        opaque,
        assigned,
        folder,
        wrapper.elsewhere,
        bool(opaque) or wrapper.elsewhere,
        network=wrapper.network,
    )


def _joined(words: Words, *, in_bash: bool) -> Arg:
    """Words as one text for a shell. Names that a pattern gave may hold anything: not known."""
    spelling = dict.fromkeys(word.pattern or word.text for word in words)
    clear = all(word.known and not word.pattern for word in words)
    clear = clear and (in_bash or not any(_BASH_ONLY.search(word.text) for word in words))
    return Arg(" ".join(word.text for word in words) if clear else " ".join(spelling), clear)


def _assigned(operands: list[Arg]) -> tuple[tuple[tuple[str, str], ...], list[Arg]]:
    """NAME=VALUE before the command, and the rest."""
    found: list[tuple[str, str]] = []
    for at, operand in enumerate(operands):
        match = ASSIGNMENT(operand.text)
        if match is None:
            return tuple(found), operands[at:]
        found.append((match[1], match[2]))
    return tuple(found), []


def _shell(name: str, args: list[Arg]) -> Wrapped | None:
    """`bash -euo pipefail -c 'text'`; anything else that a shell runs is a script."""
    clear, at, wants = True, 0, False
    while at < len(args) and args[at].text[:1] in ("-", "+") and args[at].text not in ("-", "--"):
        text = args[at].text
        at += 1
        if text.startswith("--"):
            clear = False
            continue
        letters = text[1:]
        wants = wants or "c" in letters
        if letters.endswith("o") and at < len(args):
            clear = clear and args[at].text in _SHELL_OPTIONS
            at, letters = at + 1, letters[:-1]
        clear = clear and set(letters) <= _SHELL_LETTERS
    if at < len(args) and args[at].text == "--":
        at += 1
    if not wants or at >= len(args):
        return None
    inner = args[at]
    if not clear or name not in CERTAIN_SHELLS:
        return Wrapped(
            texts=(inner,), sure=False, opaque=f"what {name} makes of this is not certain"
        )
    if name != "bash" and _BASH_ONLY.search(inner.text):
        return Wrapped(texts=(inner,), sure=False, opaque=f"{name} may not read this as bash does")
    return Wrapped(texts=(inner,))


_XARGS = (
    "-0 -r -t -a=read -d= -E= -I= -i? -L= -l? -n= -P= -s= -x -p -e? --null --no-run-if-empty "
    "--verbose --arg-file=read --delimiter= --max-args= --max-procs= --max-lines? --replace? "
    "--max-chars= --exit --interactive"
)


def _xargs(args: list[Arg]) -> Wrapped | None:
    """xargs adds words that nobody has seen: what it runs is seen, and is not all."""
    given = sort_words(args, flag_table(_XARGS), stop=True)
    if not given.operands:
        return None
    words = tuple(given.operands)
    starts = range(min(_GUESSES, len(words))) if given.strange else range(1)
    return Wrapped(
        tuple(words[i:] for i in starts),
        does="changes",
        sure=False,
        reason=f"xargs runs {spelled([words[0].text])[:60]} with words that it reads",
    )


def _git(args: list[Arg]) -> Wrapped | None:
    """Aliases given with `-c`, and the verbs that run a command on every step."""
    texts = [arg.text for arg in args]
    inner = [
        Arg(t.partition("=!")[2], a.known) for a, t in zip(args, texts, strict=True) if "=!" in t
    ]
    for at, text in enumerate(texts[:-1]):
        if text in ("-x", "--exec", "--tree-filter", "--index-filter", "foreach"):
            inner.append(args[at + 1])
        elif text == "run" and "bisect" in texts:
            inner.append(Arg(spelled(texts[at + 1 :])))
            break
    if not inner:
        return None
    return Wrapped(
        texts=tuple(inner),
        does="changes",
        sure=False,
        reason="git runs other programs",
        own=tuple(args),
    )


def _after(args: list[Arg], flags: tuple[str, ...], reason: str) -> Wrapped | None:
    at = next((i for i, arg in enumerate(args) if arg.text.split("=")[0] in flags), None)
    if at is None:
        return None
    return Wrapped((tuple(args[at + 1 :]),), does="changes", sure=False, reason=reason)
