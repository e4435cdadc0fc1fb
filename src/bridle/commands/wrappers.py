"""Programs that run the program named after them, as data: their flags, and what they do to it.

Also the shape of what was found inside one. Finding it is `unwrap.py`'s.
"""

from msgspec import Struct

from bridle.commands.options import Arg
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
