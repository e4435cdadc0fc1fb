"""Real bash, with a recorder in place of every program: what would have been run, and with what.

No program is ever found: the folder of programs does not exist, and bash hands each command to
`command_not_found_handle`, which writes its words into a pipe.
"""

import os
import random
import shutil
import subprocess
from contextlib import contextmanager

# An end of a line is written as another character: bash writes in lines, and parts of a pipe would
# write between those of one record.
RECORDER = """() {
    [ "$1" = slurp ] && { IFS= read -r -d '' text; set -- "$@" "$text"; }
    set -- "${@//$'\\n'/$'\\2'}"
    printf '%s\\0' "$#" "$@" >&20
    return "$STATUS"
}"""
NAMES = ("a", "b", "c", "ab", "1", "2", "in", "x]", "a b", "E", "-", "a#", "!", "{", "a=b", "[a]")


def run_line(line, folder, status=0, globs=True):
    """The argv lists of all commands that bash runs for a line, in order."""
    source, sink = os.pipe()
    environ = {
        "PATH": "/nowhere",
        "HOME": "/home/me",
        "STATUS": str(status),
        "LC_ALL": "C.UTF-8",
        "BASH_FUNC_command_not_found_handle%%": RECORDER,
    }
    words = [shutil.which("bash"), *([] if globs else ["-f"]), "-c", "--", line]
    with as_number(sink, 20):
        subprocess.run(
            words,
            env=environ,
            cwd=folder,
            pass_fds=(20,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    os.close(sink)
    with os.fdopen(source, "rb") as pipe:
        return to_records(pipe.read())


@contextmanager
def as_number(handle, number):
    """The file under that number; what others have there is back in the end."""
    try:
        others = os.dup(number)
    except OSError:
        others = -1
    os.dup2(handle, number)
    try:
        yield
    finally:
        if others < 0:
            os.close(number)
        else:
            os.dup2(others, number, inheritable=False)
            os.close(others)


def to_records(written):
    """Each record is a count and so many words."""
    fields = written.decode().replace("\2", "\n").split("\0")
    records = []
    while len(fields) > 1:
        count = int(fields.pop(0))
        records.append([fields.pop(0) for _ in range(count)])
    return records


def expected(script):
    """The argv lists that we think bash runs, all of them."""
    found = []
    for command in script.commands:
        words = ["/home/me" + word.text[1:] if word.tilde else word.text for word in command.words]
        if words and words[0] == "slurp":
            words.append(handed_over(command))
        if words:
            found.append(words)
    return found


def handed_over(command):
    """The text that a command is given by its last here-text."""
    texts = [one for one in command.redirects if one.kind == "text"]
    return texts[-1].target.text if texts else ""


def populate(folder):
    """Files whose names a word would turn into if it were a pattern after all."""
    for name in NAMES:
        (folder / name).write_text("")


FRAGMENTS = (
    *"aabbcc12Ex",
    *("slurp", "in", "a=b", "A=1", "--a=b", "-", "--", ".", ",", "..", ":", "%", "@", "^", "+"),
    *("'", '"', "\\", "$", "`", "#", "~", "=", "!", "{", "}", "[", "]", "*", "?", "/", "é", "\t"),
    *("'a b'", '"a b"', "'\"'", '"\'"', '"a\\"b"', '"\\\\"', '"\\a"', "\\'", "\\ ", "\\#", '"$"'),
    *(
        "$'\\x61'",
        "$'a\\tb'",
        "$'\\'\\\\'",
        "$'\\141\\u61'",
        "$'\\cA\\e'",
        "$'\\q'",
        "''",
        '"a\nb"',
    ),
    *("{}", "{a}", "{a,b}", "{1..2}", "@{1}", "[a]", "[!a-b]", "a$", "$a", "$(a)", "2#", "a#b"),
    *(" ", " ", " ", " ", " ", " ", " ", " ", "  ", "\n", " \\\n", "\\\n", "; ", ";", " && "),
    *("&&", " || ", " | ", "|", " |& ", " & ", "&", " ( ", "(", " ) ", ")", " { ", "; } ", "( a )"),
    *(
        " >c",
        ">",
        ">>",
        ">|",
        " <in ",
        "<",
        "<>",
        "&>",
        "&>>",
        " 2>c ",
        "2>&1",
        " >&2",
        "12>",
        "<<<",
    ),
    *(
        " <<E\na b\nE\n",
        " <<'E'\n$a\\\nE\n",
        " <<-E\n\ta\n\tE\n",
        " # c",
        " #c\n",
        "if ",
        "then ",
        "time ",
    ),
    *("! ", "[[ ", " ]]", "case", "in ", "do ", "function ", '$"a"', "~/a", "~a", "a~", "HEAD~1"),
)


def soup(dice: random.Random):
    """A line made of whatever a shell finds hard to tell apart."""
    return "".join(dice.choice(FRAGMENTS) for _ in range(dice.randint(1, 14)))
