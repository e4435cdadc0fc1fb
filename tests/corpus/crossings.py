"""The ways in which a command can be wrapped, spelled and joined: each makes a line of a command.

`PLAIN` are those through which a careful reader still sees the command; through `HIDDEN` nobody can
say what will run. Knows nothing of how a line is judged.
"""

import base64
import re
from shlex import quote

_WORD = re.compile(r"(?!(?:cd|pushd)\b)([a-z][a-z0-9_.]+)(?=[ \t]|$)")  # a program, first
_MOVES = re.compile(r"(?:command |builtin )?(?:cd|pushd|popd|dirs)\b")


def before(words):
    """Put words before the command. Who only runs programs cannot change the shell's folder."""

    def cross(command):
        return f"{words} sh -c {quote(command)}" if _MOVES.match(command) else f"{words} {command}"

    return cross


def around(template):
    """`{c}` is the command, `{q}` the command as one quoted word."""
    return lambda command: template.replace("{q}", quote(command)).replace("{c}", command)


def spelled(change):
    """Write the program's name otherwise; a line that has no plain one stays as it is."""

    def cross(command):
        found = _WORD.match(command)
        return change(found[1]) + command[found.end() :] if found else command

    return cross


def _aliased(command):
    return f"git -c alias.x={quote('!' + command)} x"


def _doubled(command):
    return "sh -c " + quote("sh -c " + quote(command))


def _through_base64(command):
    return f"echo {base64.b64encode(command.encode('utf-8', 'replace')).decode()} | base64 -d | sh"


def _reversed(command):
    return f"echo {quote(command[::-1])} | rev | sh"


WRAPPERS = {
    "sudo": before("sudo"),
    "sudo -u": before("sudo -u root"),
    "env": before("env"),
    "env with a value": before("env A=1"),
    "nice": before("nice -n 5"),
    "timeout": before("timeout 5"),
    "nohup": before("nohup"),
    "setsid": before("setsid"),
    "command": before("command"),
    "exec": before("exec"),
    "time": before("time"),
    "stdbuf": before("stdbuf -oL"),
    "busybox": before("busybox"),
    "xargs": before("xargs"),
    "a value": before("A=1"),
    "several": before("timeout 5 nice env A=1 nohup"),
    "sh -c": around("sh -c {q}"),
    "bash -lc": around("bash -lc {q}"),
    "sh in sh": _doubled,
    "eval": around("eval {q}"),
    "env -S": around("env -S {q}"),
    "watch": around("watch {q}"),
    "su": around("su -c {q}"),
    "find -exec": around("find . -maxdepth 0 -exec sh -c {q} ';'"),
    "xargs sh": around("echo x | xargs sh -c {q}"),
    "git alias": _aliased,
    "subshell": around("({c})"),
    "group": around("{ {c}; }"),
    "not": around("! {c}"),
    "background": around("{c} &"),
    "if": around("if true; then {c}; fi"),
    "while": around("while {c}; do break; done"),
    "for": around("for x in 1; do {c}; done"),
    "case": around("case x in x) {c};; esac"),
    "function": around("f() { {c}; }; f"),
    "echo to sh": around("echo {q} | sh"),
    "here-doc": around("sh << 'END'\n{c}\nEND"),
    "here-string": around("bash <<< {q}"),
    "substitution": around("echo $({c})"),
    "backticks": around("echo `{c}`"),
    "in quotes": around('echo "$({c})"'),
    "process substitution": around("cat <({c})"),
    "default": around("echo ${x:-$({c})}"),
    "cd": around("cd src && cd .. && {c}"),
    "output thrown away": around("{c} > /dev/null 2>&1"),
}
SPELLINGS = {
    "backslash": spelled(lambda name: "\\" + name),
    "backslash inside": spelled(lambda name: name[0] + "\\" + name[1:]),
    "quoted": spelled(lambda name: f'"{name}"'),
    "half quoted": spelled(lambda name: f'"{name[0]}"{name[1:]}'),
    "empty quotes": spelled(lambda name: f"{name[0]}''{name[1:]}"),
    "ansi": spelled(lambda name: f"$'\\x{ord(name[0]):02x}{name[1:]}'"),
    "octal": spelled(lambda name: f"$'\\{ord(name[0]):03o}{name[1:]}'"),
    "absolute": spelled(lambda name: f"/bin/{name}"),
    "longer way": spelled(lambda name: f"/usr/../bin//{name}"),
    "comment": around("{c} # only looking"),
    "new line": around("\n{c}\n"),
    "tabs": spelled(lambda name: f"\t{name}\t"),
    "continued": spelled(lambda name: f"{name} \\\n"),
    "continued inside": spelled(lambda name: f"{name[0]}\\\n{name[1:]}"),
}
JOINTS = {
    "; before": around("ls; {c}"),
    "; after": around("{c}; ls"),
    "&& before": around("ls && {c}"),
    "&& after": around("{c} && ls"),
    "|| before": around("false || {c}"),
    "|| after": around("{c} || ls"),
    "| before": around("ls | { {c}; }"),
    "| after": around("{c} | cat"),
    "& before": around("ls & {c}"),
    "& after": around("{c} & ls"),
    "line before": around("ls\n{c}"),
    "line after": around("{c}\nls"),
    "|& after": around("{c} |& cat"),
}
PLAIN = WRAPPERS | SPELLINGS | JOINTS
HIDDEN = {
    "base64": _through_base64,
    "reversed": _reversed,
    "variable": around("c={q}; $c"),
    "evaluated variable": around('c={q}; eval "$c"'),
    "braces": lambda command: "{" + ",".join(command.split(" ")) + "}",
    "python": lambda command: f"python3 -c {quote(f'import os; os.system({command!r})')}",
    "perl": lambda command: f"perl -e {quote(f'system {command!r}')}",
    "pattern": spelled(lambda name: f"/bin/{name[0]}?{name[2:]}"),
    "no-break space": lambda command: command.replace(" ", "\u00a0"),
    "wide space": lambda command: command.replace(" ", "\u3000"),
    "zero width": spelled(lambda name: f"{name[0]}\u200b{name[1:]}"),
    "carriage return": lambda command: f"ls\r{command}",
    "nothing between": lambda command: f"ls\0{command}",
    "ssh": around("ssh localhost {q}"),
    "docker": around("docker run -v /:/h x sh -c {q}"),
    "IFS": lambda command: command.replace(" ", "${IFS}"),
    "trap": around("trap {q} EXIT"),
    "alias": around("alias ls={q}; ls"),
    "file": around("echo {q} > x.sh; sh x.sh"),
}
