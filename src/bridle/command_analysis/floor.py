"""Commands that no one may run: they destroy a disk, a machine or a history, or open it to others.

Every command that can be seen is checked, even inside of other commands and in a line that is not
understood. Some commands may run only if a person allows them. `paths` checks what is written and
deleted.
"""

import re
from collections.abc import Callable

from bridle.command_analysis.argv import Arg
from bridle.command_analysis.findings import Findings
from bridle.command_analysis.paths import PathAccess, shorten
from bridle.command_analysis.variables import likely_value
from bridle.command_analysis.wrappers import INTERPRETERS, SHELLS
from bridle.policy import Act

_DISK = "formats or rewrites a disk"
_OFF = "turns the machine off"
_KERNEL = "changes the running kernel"
_USERS = "changes the users of the machine"
_MOUNT = "changes what is mounted"

FORBIDDEN_PROGRAMS: dict[str, str] = {
    **dict.fromkeys(
        (
            *("mkfs", "wipefs", "sfdisk", "cfdisk", "parted", "gdisk", "sgdisk", "mkswap"),
            *("blkdiscard", "mke2fs", "newfs", "cryptsetup", "lvremove", "vgremove"),
            *("pvremove", "debugfs", "hdparm", "badblocks"),
        ),
        _DISK,
    ),
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff", "kexec"), _OFF),
    **dict.fromkeys(("insmod", "modprobe", "rmmod"), _KERNEL),
    **dict.fromkeys(
        (
            *("useradd", "userdel", "usermod", "groupadd", "groupdel", "adduser", "deluser"),
            *("passwd", "chpasswd", "visudo", "vipw", "vigr", "chsh", "dscl"),
        ),
        _USERS,
    ),
    "killall5": "ends every process",
    **dict.fromkeys(("umount", "swapoff", "pivot_root", "losetup"), _MOUNT),
}

_BOMB = re.compile(
    r"(?<![\w:.])([A-Za-z_:.][\w:.]*+)\s*+(?:\(\s*+\)\s*+)?\{\s*+\1\s*+(?:\||&)\s*+\1(?![\w:.])"
)
_ROOTS = frozenset({"/", "/*", "/.", "/..", "//", "~", "~/", "~/*", "$HOME", "${HOME}"})
_QUOTES = str.maketrans("", "", "\"'")


def is_bomb(text: str) -> bool:
    """Return whether the text defines a function that starts itself twice."""
    return "{" in text and _BOMB.search(text) is not None


def check_program(name: str, args: list[Arg], access: PathAccess) -> None:
    """Note if a program must never run with these words, or only if a person allows it."""
    lower = name.lower()
    if lower in FORBIDDEN_PROGRAMS or lower.startswith("mkfs."):
        if args:
            access.findings.forbid(f"{name} {FORBIDDEN_PROGRAMS.get(lower, _DISK)}")
        elif lower in ("reboot", "halt", "poweroff", "shutdown", "passwd", "visudo"):
            access.findings.forbid(f"{name} {FORBIDDEN_PROGRAMS[lower]}")
    check = _CHECKS.get(lower)
    if check is not None:
        check([arg.text for arg in args], access)


def check_unknown_program(args: list[Arg], home: str, findings: Findings) -> None:
    """Forbid `$X -rf /`: the program is not known, but could be `rm`."""
    texts = [(arg.pattern or arg.text).translate(_QUOTES) for arg in args]
    flags = [text for text in texts if text.startswith("-")]
    short = "".join(flag for flag in flags if not flag.startswith("--")).lower()
    is_recursive = "r" in short or "--recursive" in flags
    is_forced = "f" in short or "--force" in flags
    roots = {*_ROOTS, home, f"{home}/", f"{home}/*"}
    if is_recursive and is_forced and any(text in roots or _TOP(text) for text in texts):
        findings.forbid("may delete everything: the program that it runs is not known")


_TOP = re.compile(r"/+[\w.-]*(?:/+\**)?").fullmatch  # `/` or a folder in it


def check_remote_command(name: str, args: list[Arg], findings: Findings) -> None:
    """Check a command on another machine, of whose paths nothing is known."""
    texts = [arg.text.translate(_QUOTES) for arg in args]
    lower = name.lower()
    if (lower in FORBIDDEN_PROGRAMS and args) or lower.startswith("mkfs."):
        findings.forbid(f"{name} {FORBIDDEN_PROGRAMS.get(lower, _DISK)}")
    if lower == "rm" and _is_recursive(texts) and not _ROOTS.isdisjoint(texts):
        findings.forbid("deletes everything")


def check_piped_input(name: str, args: list[Arg], source: str, findings: Findings) -> None:
    """Note an interpreter that runs what comes out of a pipe."""
    if name == "xargs" and args and args[-1].text in ("-c", "-e", "-lc"):
        findings.require_person("xargs makes a shell run its input, which no one has seen")
    if name not in INTERPRETERS:
        return
    texts = [arg.text for arg in args]
    if name in SHELLS:
        reads_input = not any("c" in t for t in texts if t.startswith("-") and t[1:2] != "-")
        reads_input = reads_input and all(t.startswith(("-", "+")) for t in texts)
    else:
        reads_input = not texts or texts[-1] in ("-", "/dev/stdin")
    if reads_input or "-s" in texts:
        is_download = source in ("curl", "wget", "fetch")
        text = "a download that" if is_download else "its input, which"
        findings.require_person(f"{name} runs {text} no one has seen")


def check_generated_text(name: str, args: list[Arg], findings: Findings) -> None:
    """Note `eval "$(curl …)"` and `bash <(…)`, which run the output of another command."""
    if name not in INTERPRETERS and name not in ("eval", "source", "."):
        return
    for arg in args:
        if not arg.known and _SUBSTITUTION(arg.text):
            findings.require_person(f"{name} runs the output of another command")


_SUBSTITUTION = re.compile(r"[\"']?(?:\$\(|`|<\()").match


def _is_recursive(texts: list[str]) -> bool:
    return any(
        t in ("--recursive", "--no-preserve-root") or re.fullmatch(r"-[A-Za-z]*[rR][A-Za-z]*", t)
        for t in texts
    )


def _rm(texts: list[str], access: PathAccess) -> None:
    if "--no-preserve-root" in texts:
        access.findings.forbid("deletes everything")


def _kill(texts: list[str], access: PathAccess) -> None:
    targets = [t for t in texts if re.fullmatch(r"-?\d+", t)]
    if len(targets) > 1 and targets[0].startswith("-"):  # the signal
        targets = targets[1:]
    if (any(t in ("-1", "1") for t in targets) and len(texts) > 1) or texts == ["1"]:
        access.findings.forbid("ends every process, or the first one")


_USER_FLAGS = frozenset({"-u", "-U", "--euid", "--uid", "--user"})


def _pkill(texts: list[str], access: PathAccess) -> None:
    """A user without a pattern, or a pattern for everything, means every process of the user."""
    pairs = zip(["", *texts], texts, strict=False)
    patterns = [t for before, t in pairs if not t.startswith("-") and before not in _USER_FLAGS]
    whose = any(t.split("=")[0] in _USER_FLAGS for t in texts)
    if (whose and not patterns) or any(t in ("", ".", ".*", "^") for t in patterns):
        access.findings.forbid("ends every process of a user")


def _init(texts: list[str], access: PathAccess) -> None:
    if not {"0", "6", "1", "s", "S"}.isdisjoint(texts):
        access.findings.forbid(_OFF)


_OFF_COMMANDS = frozenset(
    {"poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "rescue", "emergency", "exit"}
)
_SERVICE_COMMANDS = frozenset(
    {
        *("stop", "disable", "mask", "kill", "isolate", "enable", "edit", "link"),
        *("set-default", "daemon-reexec"),
    }
)


def _systemctl(texts: list[str], access: PathAccess) -> None:
    if not _OFF_COMMANDS.isdisjoint(texts):
        access.findings.forbid(_OFF)
    elif not _SERVICE_COMMANDS.isdisjoint(texts):
        access.findings.require_person("changes which services run")


def _firewall(texts: list[str], access: PathAccess) -> None:
    if not {"-F", "--flush", "-X", "flush", "disable", "reset", "-P"}.isdisjoint(texts):
        access.findings.forbid("turns the firewall off")


def _crontab(texts: list[str], access: PathAccess) -> None:
    if texts and texts != ["-l"]:
        access.findings.forbid("changes which commands are scheduled")


def _at(texts: list[str], access: PathAccess) -> None:
    access.findings.require_person("schedules a command")


def _history(texts: list[str], access: PathAccess) -> None:
    if any(t.startswith("-") and set(t[1:]) & set("cdwr") for t in texts):
        access.findings.forbid("deletes the shell's history")


def _netcat(texts: list[str], access: PathAccess) -> None:
    runs_shell = re.compile(r"-[A-Za-z]*[ec]|--exec|--sh-exec|--lua-exec")
    if any(runs_shell.fullmatch(t.split("=")[0]) for t in texts):
        access.findings.forbid("opens a shell to another machine")


def _socat(texts: list[str], access: PathAccess) -> None:
    if any(re.match(r"(?:exec|system|shell|pty)\b", t, re.IGNORECASE) for t in texts):
        access.findings.forbid("opens a shell to another machine")


_HOST_SPACES = re.compile(
    r"(?:--pid|--ipc|--userns)[= ]host(?:\s|$)|--privileged|--cap-add[= ](?:ALL|(?:CAP_)?SYS_)",
    re.IGNORECASE,
)
_MOUNTS = re.compile(r"(?:^|\s)(?:-v|--volume|--mount)[= ]?(\S+)")


def _container(texts: list[str], access: PathAccess) -> None:
    joined = " ".join(texts)
    if _HOST_SPACES.search(joined):
        access.findings.forbid("runs a container that is not isolated from the machine")
    for mount in _MOUNTS.findall(joined):
        match = re.search(r"(?:source|src)=([^,]*)", mount)
        source = match[1] if match else mount.partition(":")[0]
        source = likely_value(source, access.machine.home, access.folder, access.machine.root)
        if source.startswith(("/", "..")) and not access.place(source).inside:
            access.findings.forbid(f"gives a container {shorten(source)}, outside the workspace")


def _mount(texts: list[str], access: PathAccess) -> None:
    if texts and texts != ["-l"]:
        access.findings.forbid(_MOUNT)


def _sysctl(texts: list[str], access: PathAccess) -> None:
    if any("=" in t or t in ("-w", "-p", "--write", "--load", "--system") for t in texts):
        access.findings.forbid(_KERNEL)


_DISK_COMMANDS = re.compile(
    r"erase|partition|reformat|zero|secure|destroy|create|labelclear|unmount"
)


def _disk_tool(texts: list[str], access: PathAccess) -> None:
    if any(_DISK_COMMANDS.match(t.lower()) for t in texts):
        access.findings.forbid(_DISK)


def _fdisk(texts: list[str], access: PathAccess) -> None:
    if "-l" not in texts:
        access.findings.forbid(_DISK)


def _shred(texts: list[str], access: PathAccess) -> None:
    for text in texts:
        if text.startswith("/dev/"):
            access.findings.forbid(f"overwrites the device {shorten(text)}")


def _chattr(texts: list[str], access: PathAccess) -> None:
    if _is_recursive(texts) and not _ROOTS.isdisjoint(texts):
        access.findings.forbid("changes every file")


_PERSON_COMMANDS = frozenset({"trust", "approvals"})


def _bridle(texts: list[str], access: PathAccess) -> None:
    """Only the person may answer a request for approval, or trust a workspace."""
    if not _PERSON_COMMANDS.isdisjoint(texts):
        access.findings.forbid("answers a request, or trusts a workspace, in the person's name")


def _python(texts: list[str], access: PathAccess) -> None:
    joined = " ".join(texts)
    if re.search(r"(?:^|\s)-\w*m\s*bridle(?:\s|$)", joined):
        _bridle(texts, access)


def _other_user(texts: list[str], access: PathAccess) -> None:
    access.findings.require_person("runs as another user")


_SETS_ID = re.compile(r"[+=][rwxXt]*s|(?:^|[+=,])0*[2-7][0-7]{3}$")


_CHMOD_FLAG = re.compile(r"--.*|-[RvcfhHLP]+").fullmatch


def _chmod(texts: list[str], access: PathAccess) -> None:
    _chattr(texts, access)
    words = [text for text in texts if not _CHMOD_FLAG(text) and "$" not in text]
    _check_mode(words[:1], access)


def _install(texts: list[str], access: PathAccess) -> None:
    """`install -m 4755`: the mode is the value of a flag, in the same word or in the next."""
    modes = [text.partition("=")[2] for text in texts if text.startswith("--mode=")]
    for word, following in zip(texts, [*texts[1:], ""], strict=False):
        if match := re.fullmatch(r"--mode|-[A-Za-z]*?m(.*)", word):
            modes.append(match[1] or following)
    _check_mode(modes, access)


def _check_mode(modes: list[str], access: PathAccess) -> None:
    if any(_SETS_ID.search(mode.translate(_QUOTES)) for mode in modes):
        access.findings.require_person("makes a file run with its owner's rights")


_CHECKS: dict[str, Callable[[list[str], PathAccess], None]] = {
    "rm": _rm,
    "bridle": _bridle,
    "python": _python,
    "python3": _python,
    "kill": _kill,
    "pkill": _pkill,
    "killall": _pkill,
    "skill": _pkill,
    "init": _init,
    "telinit": _init,
    "systemctl": _systemctl,
    "service": _systemctl,
    "iptables": _firewall,
    "ip6tables": _firewall,
    "nft": _firewall,
    "ufw": _firewall,
    "crontab": _crontab,
    "at": _at,
    "batch": _at,
    "history": _history,
    "nc": _netcat,
    "ncat": _netcat,
    "netcat": _netcat,
    "socat": _socat,
    "docker": _container,
    "podman": _container,
    "nerdctl": _container,
    "mount": _mount,
    "fdisk": _fdisk,
    "sysctl": _sysctl,
    "zpool": _disk_tool,
    "diskutil": _disk_tool,
    "shred": _shred,
    "chmod": _chmod,
    "install": _install,
    **dict.fromkeys(
        [
            *("sudo", "sudoedit", "su", "doas", "pkexec", "run0", "runuser", "setpriv", "gosu"),
            *("su-exec", "newgrp", "sg", "setcap"),
        ],
        _other_user,
    ),
    "chown": _chattr,
    "chgrp": _chattr,
    "chattr": _chattr,
}


_SCRIPT_RUNNERS = INTERPRETERS | frozenset(
    [
        *("awk", "mawk", "nawk", "sed", "gsed", "make", "gmake", "ninja", "just", "task"),
        *("tmux", "screen", "gdb", "lldb", "find", "parallel", "xargs", "watch", "entr"),
        *("ftp", "lftp", "less", "more", "man", "tar", "zip", "view", "rvim", "vimdiff"),
        *("cargo", "rsync", "ssh", "ed", "ex", "vi", "vim", "nvim", "emacs", "flock", "docker"),
        *("podman", "kubectl", "nsenter", "unshare", "chroot", "su", "sudo", "doas", "rg", "sort"),
        *("git-shell", "at", "batch", "crontab", "env", "script", "trap", "alias"),
    ]
)
_MAX_TEXT = 20_000
_MAX_WORDS = 40  # of a text that may begin a command, and of such a command
_NAME = re.compile(r"[\w.+ -]+").fullmatch
_SIGNS = re.compile(r"""["'`,()\[\]{}\\;|&]+""")
_EVERYTHING = r"(?:/|/\*|~/?\*?|\$HOME/?\*?)(?=\s|$)"
_DELETES_EVERYTHING = re.compile(
    rf"\brm\s+(?:-[\w-]+\s+)*-(?:\w*[rR]\w*|-recursive)\s+(?:-[\w-]+\s+)*{_EVERYTHING}"
    rf"|\brmtree\s+{_EVERYTHING}|\bmkfs(?:\.\w+)?\s+\S*/dev/|\bof=/dev/(?:sd|hd|vd|xvd|nvme|disk|mmc)"
)
_HINT = re.compile(r"rm|mkfs|of=/dev/|\{").search  # in every such text, and in few others


def _may_run_words(name: str, known: bool) -> bool:
    """Return whether a program may run what its words say. One that is not known may."""
    name = name.rpartition("/")[2]
    is_interpreter = name.startswith(("python", "pypy", "perl", "ruby"))
    return not known or name in _SCRIPT_RUNNERS or is_interpreter


def check_script(
    name: str, known: bool, texts: list[str], findings: Findings, home: str = "~"
) -> None:
    """Forbid a program whose words say to delete everything, if it may run them."""
    name = name.rpartition("/")[2]
    if not texts or not _may_run_words(name, known):
        return
    if not _NAME(name):  # not a program, but a line that was split in a wrong place
        return
    together = " ".join("~" if text in (home, f"{home}/") else text for text in texts)
    for text in (*texts, together):
        if len(text) < 6 or len(text) > _MAX_TEXT or not _HINT(text):
            continue
        words = _SIGNS.sub(" ", text.replace("${HOME}", "$HOME"))
        if _DELETES_EVERYTHING.search(words) or is_bomb(text):
            findings.forbid(f"{name[:40]} may delete everything, as its words say")


def possible_commands(text: str) -> tuple[str, ...]:
    """Return what may be a command in a text: everything from each of its words on.

    Rules that forbid are compared with them. Quotes and signs count as blanks.
    """
    words = _SIGNS.sub(" ", text[:_MAX_TEXT].replace("${IFS}", " ").replace("$IFS", " ")).split()
    return tuple(
        " ".join([_program_name(words[index]), *words[index + 1 : index + _MAX_WORDS]])
        for index in range(min(len(words), _MAX_WORDS))
    )


def _program_name(word: str) -> str:
    """Return `curl` for `+!curl`, `exec=curl` and `/bin/curl`."""
    return (word.rpartition("=")[2] or word).rpartition("/")[2].lstrip("+!@:-") or word


def check_whole_line(command: str, findings: Findings) -> None:
    """Check a line that may run what its words say, in whichever of its commands these are.

    Everything in it that may be a command can be forbidden by a rule.
    """
    if findings.floor if findings.opaque else all(map(_is_plain, findings.acts)):
        return
    check_script("the line", False, [command], findings)
    findings.add_act(Act(("shell",), command, "reads", also=possible_commands(command), minor=True))


_PLAIN = frozenset(
    [
        *("git", "gh", "hg", "echo", "printf", "mkdir", "touch", "cp", "mv", "ln", "chmod", "rm"),
        *("rmdir", "tee", "cd"),
    ]
)


def _is_plain(act: Act) -> bool:
    """Return whether an act is harmless, or that of a program that does not run its words."""
    if act.is_path or act.does in ("reads", "edits"):
        return True
    words = act.subject.split(" ")
    return words[0] in _PLAIN and "-c" not in words


_READ_LOOP = re.compile(
    r"\|\s*while\b[^|]{0,200}?\bread\b.{0,400}?\b(?:eval|source|sh|bash)\b", re.DOTALL
)


def check_loop(text: str, findings: Findings) -> None:
    """Note a loop that runs what it reads: `curl … | while read l; do eval "$l"; done`."""
    if "while" in text and _READ_LOOP.search(text[:_MAX_TEXT]):
        findings.require_person("a loop runs its input, which no one has seen")
