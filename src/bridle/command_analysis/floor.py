"""What no one lets run: commands that end a machine, a disk, a history, or hand it to somebody.

Looks at every command that can be seen, whatever it is wrapped in and however the rest of the line
reads. Writes and deletes outside the workspace are `reach.py`'s; here is what has a name.
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
            "mkfs",
            "wipefs",
            "sfdisk",
            "cfdisk",
            "parted",
            "gdisk",
            "sgdisk",
            "mkswap",
            "blkdiscard",
            "mke2fs",
            "newfs",
            "cryptsetup",
            "lvremove",
            "vgremove",
            "pvremove",
            "debugfs",
            "hdparm",
            "badblocks",
        ),
        _DISK,
    ),
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff", "kexec"), _OFF),
    **dict.fromkeys(("insmod", "modprobe", "rmmod"), _KERNEL),
    **dict.fromkeys(
        (
            "useradd",
            "userdel",
            "usermod",
            "groupadd",
            "groupdel",
            "adduser",
            "deluser",
            "passwd",
            "chpasswd",
            "visudo",
            "vipw",
            "vigr",
            "chsh",
            "dscl",
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
    """Does the text define a function that starts itself twice?"""
    return "{" in text and _BOMB.search(text) is not None


def check_program(name: str, args: list[Arg], access: PathAccess) -> None:
    """Note what must never run, and what only a person may allow."""
    low = name.lower()
    if low in FORBIDDEN_PROGRAMS or low.startswith("mkfs."):
        if args:
            access.findings.forbid(f"{name} {FORBIDDEN_PROGRAMS.get(low, _DISK)}")
        elif low in ("reboot", "halt", "poweroff", "shutdown", "passwd", "visudo"):
            access.findings.forbid(f"{name} {FORBIDDEN_PROGRAMS[low]}")
    special = _CHECKS.get(low)
    if special is not None:
        special([arg.text for arg in args], access)


def check_unknown_program(args: list[Arg], home: str, findings: Findings) -> None:
    """`$X -rf /`: a program whose name is not known, told to do what `rm` does to everything."""
    texts = [(arg.pattern or arg.text).translate(_QUOTES) for arg in args]
    flags = [text for text in texts if text.startswith("-")]
    short = "".join(flag for flag in flags if not flag.startswith("--")).lower()
    deep = "r" in short or "--recursive" in flags
    forced = "f" in short or "--force" in flags
    whole = {*_ROOTS, home, f"{home}/", f"{home}/*"}
    if deep and forced and any(text in whole or _TOP(text) for text in texts):
        findings.forbid("may delete everything: the program that it runs is not known")


_TOP = re.compile(r"/+[\w.-]*(?:/+\**)?").fullmatch  # a folder of the root itself


def check_remote_command(name: str, args: list[Arg], findings: Findings) -> None:
    """The same for a command on another machine, of whose paths nothing is known."""
    texts = [arg.text.translate(_QUOTES) for arg in args]
    low = name.lower()
    if (low in FORBIDDEN_PROGRAMS and args) or low.startswith("mkfs."):
        findings.forbid(f"{name} {FORBIDDEN_PROGRAMS.get(low, _DISK)}")
    if low == "rm" and _is_recursive(texts) and not _ROOTS.isdisjoint(texts):
        findings.forbid("deletes everything there is")


def check_piped_input(name: str, args: list[Arg], source: str, findings: Findings) -> None:
    """An interpreter at the end of a pipe runs what nobody has seen."""
    if name == "xargs" and args and args[-1].text in ("-c", "-e", "-lc"):
        findings.require_person("xargs has a shell run what it is piped, unseen")
    if name not in INTERPRETERS:
        return
    texts = [arg.text for arg in args]
    if name in SHELLS:
        reads_input = not any("c" in t for t in texts if t.startswith("-") and t[1:2] != "-")
        reads_input = reads_input and all(t.startswith(("-", "+")) for t in texts)
    else:
        reads_input = not texts or texts[-1] in ("-", "/dev/stdin")
    if reads_input or "-s" in texts:
        unseen = "downloads" if source in ("curl", "wget", "fetch") else "is piped"
        findings.require_person(f"{name} runs what it {unseen}, unseen")


def check_generated_text(name: str, args: list[Arg], findings: Findings) -> None:
    """`eval "$(curl …)"`, `bash <(…)`: text that another command makes, run."""
    if name not in INTERPRETERS and name not in ("eval", "source", "."):
        return
    for arg in args:
        if not arg.known and _SUBSTITUTION(arg.text):
            findings.require_person(f"{name} runs text that another command makes")


_SUBSTITUTION = re.compile(r"[\"']?(?:\$\(|`|<\()").match


def _is_recursive(texts: list[str]) -> bool:
    return any(
        t in ("--recursive", "--no-preserve-root") or re.fullmatch(r"-[A-Za-z]*[rR][A-Za-z]*", t)
        for t in texts
    )


def _rm(texts: list[str], access: PathAccess) -> None:
    if "--no-preserve-root" in texts:
        access.findings.forbid("deletes everything there is")


def _kill(texts: list[str], access: PathAccess) -> None:
    targets = [t for t in texts if re.fullmatch(r"-?\d+", t)]
    signals = targets and targets[0].startswith("-") and len(targets) > 1
    named = targets[1:] if signals else targets
    if (any(t in ("-1", "1") for t in named) and len(texts) > 1) or texts == ["1"]:
        access.findings.forbid("ends every process, or the first one")


_USER_FLAGS = frozenset({"-u", "-U", "--euid", "--uid", "--user"})


def _pkill(texts: list[str], access: PathAccess) -> None:
    """Without a pattern, or with one for everything, all of a user's processes are meant."""
    pairs = zip(["", *texts], texts, strict=False)
    patterns = [t for before, t in pairs if not t.startswith("-") and before not in _USER_FLAGS]
    whose = any(t.split("=")[0] in _USER_FLAGS for t in texts)
    if (whose and not patterns) or any(t in ("", ".", ".*", "^") for t in patterns):
        access.findings.forbid("ends every process of a user")


def _init(texts: list[str], access: PathAccess) -> None:
    if not {"0", "6", "1", "s", "S"}.isdisjoint(texts):
        access.findings.forbid(_OFF)


_OFF_VERBS = frozenset(
    {"poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "rescue", "emergency", "exit"}
)
_UNIT_VERBS = frozenset(
    {
        "stop",
        "disable",
        "mask",
        "kill",
        "isolate",
        "enable",
        "edit",
        "link",
        "set-default",
        "daemon-reexec",
    }
)


def _systemctl(texts: list[str], access: PathAccess) -> None:
    if not _OFF_VERBS.isdisjoint(texts):
        access.findings.forbid(_OFF)
    elif not _UNIT_VERBS.isdisjoint(texts):
        access.findings.require_person("changes which services run")


def _firewall(texts: list[str], access: PathAccess) -> None:
    if not {"-F", "--flush", "-X", "flush", "disable", "reset", "-P"}.isdisjoint(texts):
        access.findings.forbid("takes the firewall down")


def _crontab(texts: list[str], access: PathAccess) -> None:
    if texts and texts != ["-l"]:
        access.findings.forbid("changes what runs at set times")


def _at(texts: list[str], access: PathAccess) -> None:
    access.findings.require_person("has a command run later")


def _history(texts: list[str], access: PathAccess) -> None:
    if any(t.startswith("-") and set(t[1:]) & set("cdwr") for t in texts):
        access.findings.forbid("wipes the history of the shell")


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
        access.findings.forbid("runs a container that is not kept from the machine")
    for mount in _MOUNTS.findall(joined):
        found = re.search(r"(?:source|src)=([^,]*)", mount)
        source = found[1] if found else mount.partition(":")[0]
        source = likely_value(source, access.machine.home, access.folder, access.machine.root)
        if source.startswith(("/", "..")) and not access.place(source).inside:
            access.findings.forbid(f"gives a container {shorten(source)}, outside the workspace")


def _mount(texts: list[str], access: PathAccess) -> None:
    if texts and texts != ["-l"]:
        access.findings.forbid(_MOUNT)


def _sysctl(texts: list[str], access: PathAccess) -> None:
    if any("=" in t or t in ("-w", "-p", "--write", "--load", "--system") for t in texts):
        access.findings.forbid(_KERNEL)


_DISK_VERBS = re.compile(r"erase|partition|reformat|zero|secure|destroy|create|labelclear|unmount")


def _disk_tool(texts: list[str], access: PathAccess) -> None:
    if any(_DISK_VERBS.match(t.lower()) for t in texts):
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
        access.findings.forbid("changes every file there is")


_PERSON_COMMANDS = frozenset({"trust", "approvals"})


def _bridle(texts: list[str], access: PathAccess) -> None:
    """Trust and answers are the person's to give, and not the model's to type."""
    if not _PERSON_COMMANDS.isdisjoint(texts):
        access.findings.forbid("gives an answer, or trust, in the person's name")


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
    """`install -m 4755`: the mode is a value of a flag, in the same word or in the next."""
    modes = [one.partition("=")[2] for one in texts if one.startswith("--mode=")]
    pairs = zip(texts, [*texts[1:], ""], strict=False)
    for word, after in pairs:
        if found := re.fullmatch(r"--mode|-[A-Za-z]*?m(.*)", word):
            modes.append(found[1] or after)
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
_MAX_WORDS = 40  # words of a text that may be the beginning of a command
_NAME = re.compile(r"[\w.+ -]+").fullmatch
_SIGNS = re.compile(r"""["'`,()\[\]{}\\;|&]+""")
_EVERYTHING = r"(?:/|/\*|~/?\*?|\$HOME/?\*?)(?=\s|$)"
_DELETES_EVERYTHING = re.compile(
    rf"\brm\s+(?:-[\w-]+\s+)*-(?:\w*[rR]\w*|-recursive)\s+(?:-[\w-]+\s+)*{_EVERYTHING}"
    rf"|\brmtree\s+{_EVERYTHING}|\bmkfs(?:\.\w+)?\s+\S*/dev/|\bof=/dev/(?:sd|hd|vd|xvd|nvme|disk|mmc)"
)
_HINT = re.compile(r"rm|mkfs|of=/dev/|\{").search  # in whatever is ruin, and in little else


def _may_run_words(name: str, known: bool) -> bool:
    """May the program run what its words say? One that is not known may run anything."""
    name = name.rpartition("/")[2]
    return (
        not known or name in _SCRIPT_RUNNERS or name.startswith(("python", "pypy", "perl", "ruby"))
    )


def check_script(
    name: str, known: bool, texts: list[str], findings: Findings, home: str = "~"
) -> None:
    """Note what a program may be told to ruin."""
    name = name.rpartition("/")[2]
    if not texts or not _may_run_words(name, known):
        return
    if not _NAME(name):  # no program, but a line that was cut in a wrong place
        return
    together = " ".join("~" if text in (home, f"{home}/") else text for text in texts)
    for text in (*texts, together):
        if len(text) < 6 or len(text) > _MAX_TEXT or not _HINT(text):
            continue
        plain = _SIGNS.sub(" ", text.replace("${HOME}", "$HOME"))
        if _DELETES_EVERYTHING.search(plain) or is_bomb(text):
            findings.forbid(f"{name[:40]} may do what its words say: delete everything there is")


def possible_commands(text: str) -> tuple[str, ...]:
    """What may be a command somewhere in a text, from each of its words on: for rules that forbid.

    Quotes and signs count as blanks, so that a command inside another's words is seen.
    """
    words = _SIGNS.sub(" ", text[:_MAX_TEXT].replace("${IFS}", " ").replace("$IFS", " ")).split()
    return tuple(
        " ".join([_program_name(words[at]), *words[at + 1 : at + _MAX_WORDS]])
        for at in range(min(len(words), _MAX_WORDS))
    )


def _program_name(word: str) -> str:
    """The name in `+!curl`, `exec=curl` and `/bin/curl`."""
    return (word.rpartition("=")[2] or word).rpartition("/")[2].lstrip("+!@:-") or word


def check_whole_line(command: str, findings: Findings) -> None:
    """A line that may run what its words say, in whichever of its commands they stand.

    What may be a command in it can then be forbidden by a rule.
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
    """Is it harmless, or a known program that runs nothing of what it is told?"""
    if act.is_path or act.does in ("reads", "edits"):
        return True
    words = act.subject.split(" ")
    return words[0] in _PLAIN and "-c" not in words


_READ_LOOP = re.compile(
    r"\|\s*while\b[^|]{0,200}?\bread\b.{0,400}?\b(?:eval|source|sh|bash)\b", re.DOTALL
)


def check_loop(text: str, findings: Findings) -> None:
    """`curl … | while read l; do eval "$l"; done`."""
    if "while" in text and _READ_LOOP.search(text[:_MAX_TEXT]):
        findings.require_person("a loop runs what it is piped, unseen")
