"""What a list of flags cannot say about a program: each check returns reasons to ask, or none.

An awk program or a sed script only prints if a strict reader understands all of it: what the reader
does not know does not only print.
"""

import re
from posixpath import join

from bridle.command_analysis.argv import Arg, Given
from bridle.command_analysis.paths import STREAMS, Reach, shown, sweep
from bridle.command_analysis.variables import why_guarded, why_not

_FORBIDDEN = re.compile(
    r"system|getline|close|fflush|ARGV|ARGC|ARGIND|SYMTAB|FUNCTAB|PROCINFO|@|#|\\\n|extension"
)
_WRITES = re.compile(r'>>|>\s*"')
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<number>\d+(?:\.\d+)?)|(?P<mark>\|\||&&|>=|<=|==|!=|\+\+|--|[-+*%^]=|\n|.)"""
)
# No two awks agree on a slash, a bracket or an empty set inside of brackets; nor on an escaped end.
_REGEX = re.compile(r"""/(?:[^/\\\n\["]|\\[^\n"]|\[\^?(?:[^\]\[\\\n/"]|\\[^\]\[\n/"])+\])+/""")
_BEFORE_REGEX = frozenset({"", "(", ",", "{", "}", ";", "!", "~", "&&", "||", "\n"})
_VALUES = frozenset({"word", "number", "string"})
# Words after which a slash may begin a pattern: keywords, and what is called without parentheses.
_KEYWORDS = frozenset(
    [
        *("print", "printf", "return", "in", "else", "do", "case", "exit", "length", "delete"),
        *("next", "nextfile", "break", "continue", "default", "switch", "if", "while", "for"),
        *("function", "func", "BEGIN", "END", "BEGINFILE", "ENDFILE"),
    ]
)
_PRINTS = frozenset({"print", "printf"})
_MOST_AWK = 4096


def awk_only_prints(program: str) -> bool:
    """Does the program do nothing but print?"""
    if len(program) > _MOST_AWK or _FORBIDDEN.search(program):
        return False
    if "print" not in program:
        return True
    if "|" in program.replace("||", "") or _WRITES.search(program):
        return False
    return ">" not in program or _compares(program)


def _compares(program: str) -> bool:
    """Is every `>` in it a comparison?"""
    at, braces, parens = 0, 0, 0
    last, kind = "", ""
    while at < len(program):
        if program[at] == "/":
            at, last, kind = _slash(program, at, last, kind)
            if at < 0:
                return False
            continue
        found = _TOKEN.match(program, at)
        if found is None:
            return False
        at = found.end()
        if found.lastgroup == "space":
            continue
        last, kind = found.group(), found.lastgroup or ""
        braces += (last == "{") - (last == "}")
        parens += (last == "(") - (last == ")")
        if not _is_harmless(last, kind, braces, parens):
            return False
    return braces == 0 and parens == 0


def _slash(program: str, at: int, last: str, kind: str) -> tuple[int, str, str]:
    """Division or the begin of a pattern? Where that cannot be said, -1."""
    if (kind in _VALUES and last not in _KEYWORDS) or last == "]":
        return at + 1, "/", "mark"
    found = _REGEX.match(program, at)
    if last not in _BEFORE_REGEX or found is None:
        return -1, "", ""
    return found.end(), found.group(), "string"


def _is_harmless(token: str, kind: str, braces: int, parens: int) -> bool:
    if kind == "word":  # `for (…; …; print > file)` has a statement in its parentheses
        return token not in _PRINTS or parens == 0
    if kind != "mark":
        return True
    if token == ">":  # inside braces it writes a file, unless it stands in parentheses
        return braces == 0 or parens > 0
    return token not in ("|", '"', "`", "\\", "'")


_ADDRESS = re.compile(r"[ \t]*(?:(\d+)(?:~\d+)?|\$|(/)|\\(.))")
_SECOND = re.compile(r"[ \t]*,[ \t]*(?:[+~]?\d+|\$|(/)|\\(.))")
_PLAIN = re.compile(r"[pdDgGhHxPnN=zl]")
_QUIT = re.compile(r"[qQ][ \t]*\d*")
_TEXT = re.compile(r"[aic][ \t]*[^\\\s][^\\\n]*(?=\n|\Z)")
_BRANCH = re.compile(r"[btT:][ \t]*[A-Za-z0-9_]*(?=[ \t]*(?:[;\n}]|\Z))")
_FLAGS = re.compile(r"[gpiIm0-9]*")
_END = re.compile(r"[ \t]*(?:[;\n}]|\Z)")
_BRACKET = re.compile(r"\[\^?(?:[^][\\\n]|\\[A-Za-z0-9.])+\]")
_MOST_SED = 4096


def sed_only_prints(script: str) -> bool:
    """Does the script do nothing but print what it reads, changed perhaps?"""
    if len(script) > _MOST_SED:
        return False
    at, depth = _blank(script, 0), 0
    while at < len(script):
        opened, at = _step(script, at)
        depth += opened
        if at < 0 or depth < 0:
            return False
        at = _blank(script, at)
    return depth == 0


def _step(script: str, at: int) -> tuple[int, int]:
    """One command: how many braces it opens, and where it ends (-1: it is not a harmless one)."""
    if script[at] == "#" and at > 0:
        return 0, script.find("\n", at) + 1 or len(script)
    if script[at] == "}":
        return -1, at + 1
    start = _addressed(script, at)
    if start < 0 or start >= len(script):
        return 0, -1
    if script[start] == "{":
        return 1, start + 1
    return 0, _command(script, start)


def _blank(script: str, at: int) -> int:
    while at < len(script) and script[at] in " \t\n;":
        at += 1
    return at


def _addressed(script: str, at: int) -> int:
    """Where the command begins, after its addresses; -1 if they are not understood."""
    at = _one_address(script, at, _ADDRESS)
    if at >= 0:
        at = _one_address(script, at, _SECOND)
    if at < 0:
        return -1
    while at < len(script) and script[at] in " \t!":
        at += 1
    return at


def _one_address(script: str, at: int, shape: re.Pattern[str]) -> int:
    found = shape.match(script, at)
    if found is None:
        return at
    delimiter = found[found.lastindex] if found.lastindex and found.lastindex > 1 else ""
    if shape is _SECOND and found.lastindex:
        delimiter = found[found.lastindex]
    if not delimiter:
        return found.end()
    if delimiter in "[]\\":
        return -1
    end = _delimited(script, found.end(), delimiter)
    while 0 <= end < len(script) and script[end] in "IM":
        end += 1
    return end


def _command(script: str, at: int) -> int:
    """Where the command ends, if it is a harmless one; else -1."""
    letter = script[at]
    if letter in "sy":
        end = _substitution(script, at)
    else:
        shapes = (_PLAIN, _QUIT, _TEXT, _BRANCH)
        found = next((m for m in (shape.match(script, at) for shape in shapes) if m), None)
        end = found.end() if found else -1
    if end < 0 or not _END.match(script, end):
        return -1
    return end


def _substitution(script: str, at: int) -> int:
    delimiter = script[at + 1 : at + 2]
    if not delimiter or delimiter in "\\\n \t;[]" or delimiter.isalnum():
        return -1
    end = _delimited(script, at + 2, delimiter)
    end = _delimited(script, end, delimiter) if end >= 0 else -1
    if end < 0:
        return -1
    flags = _FLAGS.match(script, end) if script[at] == "s" else None
    return flags.end() if flags else end


def _delimited(script: str, at: int, delimiter: str) -> int:
    """Behind the next delimiter; -1 where a bracket makes it uncertain which one that is."""
    while at < len(script):
        letter = script[at]
        if letter == delimiter:
            return at + 1
        if letter == "\n":
            return -1
        if letter == "\\":
            at += 2
        elif letter == "[":
            found = _BRACKET.match(script, at)
            if found is None or delimiter in found.group():
                return -1
            at = found.end()
        else:
            at += 1
    return -1


_AWK_FILE = re.compile(r'(>>?|<)\s*"([^"\n]{1,512})"')
_SED_FILE = re.compile(
    r"(?:^|[\s;{}/!$,\d|#gpIiMme])([rRwW])[ \t]*([^\s;{}][^\n;}]{0,512})", re.MULTILINE
)


def _note_awk_paths(program: str, reach: Reach) -> None:
    """The files that an awk program names behind `>` and `<`."""
    for sign, path in _AWK_FILE.findall(program):
        _touch(path, sign != "<", reach)


def _note_sed_paths(script: str, reach: Reach) -> None:
    """The files that a sed script names behind `w` and `r`."""
    for letter, path in _SED_FILE.findall(script):
        _touch(path.strip(), letter in "wW", reach)


def _touch(path: str, writes: bool, reach: Reach) -> None:
    if writes:
        reach.writes(Arg(path))
    else:
        reach.reads(Arg(path))


def sed(name: str, given: Given, reach: Reach) -> list[str]:
    scripts = given.values("-e", "--expression")
    if not scripts or any(flag.late for flag in given.flags):  # some take no flags there
        scripts += [arg.text for arg in given.operands[:1]]
    in_place = given.has("-i --in-place")
    files = given.operands if given.has("-e --expression") else given.operands[1:]
    reasons = [reach.writes(arg) for arg in files] if in_place else []
    if not all(sed_only_prints(script) for script in scripts):
        for script in scripts:
            _note_sed_paths(script, reach)
        reasons.append("the sed script is not one that is known to only print")
    return reasons + (["edits files in place"] if in_place else [])


def awk(name: str, given: Given, reach: Reach) -> list[str]:
    if not given.operands or not awk_only_prints(given.operands[0].text):
        for arg in given.operands[:1]:
            _note_awk_paths(arg.text, reach)
        return ["the awk program is not one that is known to only print"]
    return []


_DEEP = "-r -R --recursive --dereference-recursive"
_GIVEN = "-e -f --regexp --file"
_LOOSE = (
    "-u -uu -uuu --unrestricted -. --hidden --no-ignore --no-ignore-vcs --no-ignore-dot "
    "--no-ignore-parent --no-ignore-global --no-ignore-exclude --no-ignore-files"
)


def grep_folders(name: str, given: Given, reach: Reach) -> list[str]:
    """grep through folders."""
    ways = given.values("-d", "--directories")
    if not given.has(_DEEP) and not any("recurse".startswith(way) for way in ways):
        return []
    where = given.operands if given.has(_GIVEN) else given.operands[1:]
    sieves = [flag for flag in given.flags if flag.name in _SIEVES]
    names = tuple(given.values("--include")) if sieves and sieves[0].name == "--include" else ()
    return [reason for arg in where or [Arg(".")] for reason in sweep(arg, names, reach)]


_SIEVES = ("--include", "--exclude", "--exclude-from")


def diff_folders(name: str, given: Given, reach: Reach) -> list[str]:
    """Of two folders every file is read that is in both."""
    if len(given.operands) != 2:
        return []
    return [reason for arg in given.operands for reason in sweep(arg, (), reach)]


def ripgrep_hidden(name: str, given: Given, reach: Reach) -> list[str]:
    """rg leaves hidden and ignored files out, unless it is told not to, or is given their names."""
    globs = [glob for glob in given.values("-g", "--glob", "--iglob") if glob[:1] != "!"]
    if not globs and not given.has(_LOOSE):
        return []
    first = 0 if given.has(f"{_GIVEN} --files") else 1
    names = tuple(glob.rpartition("/")[2].replace("**", "*") or "*" for glob in globs)
    where = given.operands[first:] or [Arg(".")]
    return [reason for arg in where for reason in sweep(arg, names, reach)]


def jq(name: str, given: Given, reach: Reach) -> list[str]:
    filters = given.operands[:1]
    if any(
        re.search(r"\b(?:import|include|modulemeta|load\w*|input_filename)\b", f.text)
        for f in filters
    ):
        return [f"the {name} filter may read other files"]
    return []


_YQ = re.compile(r"load|eval|env|system|exec|import|include|modulemeta|input_filename")
_YQ_VERBS = frozenset({"e", "eval", "ea", "eval-all"})


def yq(name: str, given: Given, reach: Reach) -> list[str]:
    """Any of its words may be the filter."""
    words = [arg.text for arg in given.operands]
    filters = words[1:] if words and words[0] in _YQ_VERBS else words
    if any(map(_YQ.search, [*filters, *given.values("-o", "-p")])):
        return ["the yq filter may read other files, or the environment"]
    return []


def response_files(name: str, given: Given, reach: Reach) -> list[str]:
    """`@file` stands for words that nobody has seen, wherever it is given."""
    words = [*given.operands, *(flag.value for flag in given.flags if flag.value)]
    return [f"{name} takes its words from {shown(a.text)}" for a in words if a.text[:1] == "@"]


_UNARY = frozenset(
    [
        "-e",
        "-f",
        "-d",
        "-r",
        "-w",
        "-x",
        "-s",
        "-L",
        "-h",
        "-b",
        "-c",
        "-p",
        "-S",
        "-u",
        "-g",
        "-k",
        "-O",
        "-G",
        "-N",
    ]
)
_BINARY = frozenset(
    ["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "<", ">", "-nt", "-ot", "-ef"]
)
_OTHER = frozenset(["-z", "-n", "-t", "!", "(", ")", "-a", "-o", "]"])


def test_operators(name: str, given: Given, reach: Reach) -> list[str]:
    """`test` and `[`: files are looked at; `-v` and its like evaluate what they are given."""
    words = given.operands
    reasons = []
    for at, arg in enumerate(words):
        before = words[at - 1].text if at else ""
        after = words[at + 1].text if at + 1 < len(words) else ""
        if (
            (before in _UNARY and arg.text not in _BINARY)
            or before in ("-nt", "-ot", "-ef")
            or after in ("-nt", "-ot", "-ef")
        ):
            reasons.append(reach.reads(arg, inside=False))
        elif re.fullmatch(r"-[A-Za-z]+", arg.text) and arg.text not in (_UNARY | _BINARY | _OTHER):
            reasons.append(f"{name} {arg.text} is not known to be harmless")
    return reasons


def printf(name: str, given: Given, reach: Reach) -> list[str]:
    text = given.operands[0].text if given.operands else ""
    return ["printf sets a variable"] if re.search(r"%[^%A-Za-z]*[hjlLtz]*n", text) else []


def date(name: str, given: Given, reach: Reach) -> list[str]:
    return ["sets the clock" for arg in given.operands if not arg.text.startswith("+")]


def tar(name: str, given: Given, reach: Reach) -> list[str]:
    """Listing an archive reads it; anything else is packing or unpacking."""
    archives = [Arg(value) for value in given.values("-f", "--file")]
    letters = "" if given.flags or not given.operands else given.operands[0].text
    if letters.isalpha() and "f" in letters:
        archives = given.operands[1:2]
    if given.has("-c -r -u --create") or not {*"cru"}.isdisjoint(letters):
        first = (1 + ("f" in letters)) if letters else 0
        members = [reach.reads(arg) for arg in given.operands[first:]]
        return [*(reach.writes(arg) for arg in archives), *members, "packs files"]
    plain = not letters or (set(letters) <= set("tvzjJf") and letters.endswith("f"))
    lists = given.has("-t --list") or "t" in letters
    read = ["reads an archive elsewhere" if ":" in a.text else reach.reads(a) for a in archives]
    if given.has("-x --extract") or not (lists and plain and archives):
        read.append("unpacks files")
    return read


def unzip(name: str, given: Given, reach: Reach) -> list[str]:
    return [] if given.has("-l -v -t -p") else ["unpacks files"]


def dd(name: str, given: Given, reach: Reach) -> list[str]:
    reasons = ["copies bytes"]
    for arg in given.operands:
        key, _, value = arg.text.partition("=")
        if key == "if":
            reasons.append(reach.reads(Arg(value, arg.known)))
        elif key == "of":
            reasons.append(reach.writes(Arg(value, arg.known)))
            if value.startswith("/dev/") and value not in STREAMS:
                reach.notes.forbid(f"writes to the device {shown(value)}")
    return reasons


def git_repository(name: str, given: Given, reach: Reach) -> list[str]:
    """git, in a repository whose own configuration may run programs: no rule speaks for those."""
    if not given.operands:
        return []
    named = given.values("--git-dir")
    folders = [join(reach.machine.root, reach.place(text).path) for text in named]
    if not all(map(reach.machine.is_repository_safe, [reach.folder, *folders])):
        reach.notes.guarded(_WILD)
        return [_WILD]
    return []


_WILD = "this repository's git configuration can run programs"
_SIGNED = re.compile(r"%G|%\(signature").search


def git_format(name: str, given: Given, reach: Reach) -> list[str]:
    """`%G?` has git run a program that checks signatures."""
    formats = given.values("--format", "--pretty")
    return ["checks signatures with a program" for text in formats if _SIGNED(text)]


def git_apply(name: str, given: Given, reach: Reach) -> list[str]:
    """`git apply` only looks with one of these, unless it is told to apply all the same."""
    looks = given.has("--check --stat --numstat --summary") and not given.has("--apply")
    return [] if looks else ["changes files of the working tree"]


def git_symbolic_ref(name: str, given: Given, reach: Reach) -> list[str]:
    return ["changes a reference"] if len(given.operands) > 1 else []


_CODE_KEYS = re.compile(
    r"(?:core\.(?:hookspath|editor|pager|sshcommand|fsmonitor|askpass|gitproxy|attributesfile)"
    r"|alias\.|credential\.|filter\.|diff\..*|merge\..*|gpg\.|include|pager\.|sequence\.|url\."
    r"|init\.templatedir|uploadpack\.|receive\.|protocol\.|http\.|remote\..*\.(?:vcs|uploadpack)"
    r"|submodule\.|man\.|browser\.|difftool|mergetool|sendemail|interactive\.|trailer\.)",
    re.IGNORECASE,
)
_WRITING = "--unset --unset-all --add --replace-all"
_READING = "--get --get-all --get-regexp --get-urlmatch --list -l --show-origin --get-color"


def git_config(name: str, given: Given, reach: Reach) -> list[str]:
    """`git config` reads with a flag or one word, and writes otherwise."""
    words = [arg.text for arg in given.operands]
    late = any(flag.late for flag in given.flags)  # no flag there: `a.b --get` sets `a.b`
    early = {flag.name for flag in given.flags if not flag.late}
    alone = words == ["list"] or (len(words) == 1 and "." in words[0] and not late)
    reads = not early.isdisjoint(_READING.split()) or (alone and not given.strange)
    if reads and not given.has(_WRITING):
        return []
    if any(_CODE_KEYS.match(word) for word in words):
        reach.notes.forbid("sets a git option that runs programs")
    elif given.has("--global --system"):
        reach.notes.forbid("changes the person's own git configuration")
    else:
        reach.notes.guarded("changes the repository's git configuration")
    return ["changes the git configuration"]


_IN_PLACE = re.compile(r"-[A-Za-z0]*i").match  # perl -pi


def _is_in_place(given: Given) -> bool:
    return any(map(_IN_PLACE, [*(flag.name for flag in given.flags), given.strange]))


def _rewritten(words: list[Arg], reach: Reach) -> None:
    """One of them is the script; those that lead out are certainly none."""
    for arg in words:
        if arg.text.startswith("/"):
            reach.writes(arg)


def interpreter(name: str, given: Given, reach: Reach) -> list[str]:
    code = " ".join(given.values("-c", "-e", "-E", "-r", "--eval", "-p", "--print"))
    if "socket" in code and re.search(r"dup2|pty|/bin/(?:ba)?sh|exec\b", code):
        reach.notes.forbid("opens a shell to another machine")
    if name.startswith(("perl", "ruby")) and _is_in_place(given):
        _rewritten(given.operands, reach)
    if given.has("-c -e -E -r --eval -p --print"):
        return ["runs code that is given to it as a word"]
    return [] if given.operands else ["runs code"]


def go_env(name: str, given: Given, reach: Reach) -> list[str]:
    return ["sets a variable" for arg in given.operands if "=" in arg.text]


_MAKE_PLAIN = re.compile(r"(?!SHELL|\.SHELLFLAGS|MAKE)[A-Za-z_]\w*[?+:]*=[\w.+,-][\w./+,-]*|[^=]*")


def make(name: str, given: Given, reach: Reach) -> list[str]:
    """A variable on make's command line may be anything that a recipe runs."""
    loose = [arg.text for arg in given.operands if not _MAKE_PLAIN.fullmatch(arg.text)]
    return [*task_names(name, given, reach), *(f"make is given {shown(text)}" for text in loose)]


_LEAVING = re.compile(
    r"(?:.*[^A-Za-z])?(?i:deploy|publish|release|(?:un)?install|push|upload)(?![a-z])"
).match
_TARGETED = ("-e", "-s", "-t", "--sessions", "--target")  # flags that name targets


def task_names(name: str, given: Given, reach: Reach) -> list[str]:
    """What a target does that is called so does not stay in the workspace: it is no build."""
    words = [arg.text for arg in given.operands] + given.values(*_TARGETED)
    return [f"{name} {shown(word)} may leave the workspace" for word in words if _LEAVING(word)]


def maven_goals(name: str, given: Given, reach: Reach) -> list[str]:
    words = [arg.text for arg in given.operands] + given.values("-D")
    loose = [word for word in words if ":" in word or "exec" in word]
    told = (f"{name} {shown(word)} may run anything" for word in loose)
    return [*task_names(name, given, reach), *told]


def ps(name: str, given: Given, reach: Reach) -> list[str]:
    """`ps e` shows what other programs have in their environment."""
    loose = [a.text for a in given.operands if a.text.isalpha() and "e" in a.text.lower()]
    loose += [text for text in given.values("-o", "-O", "--format") if "environ" in text]
    return ["shows the environment of other programs"] if loose else []


def cd(name: str, given: Given, reach: Reach) -> list[str]:
    return [] if given.operands else ["goes to the home folder, outside the workspace"]


_OPTIONS = frozenset({"pipefail", "errexit", "nounset", "xtrace"})


def set_options(name: str, given: Given, reach: Reach) -> list[str]:
    named = set(given.values("-o"))
    if given.operands or not given.flags or not named <= _OPTIONS:
        return ["changes what later commands do"]
    return []


def assignments(name: str, given: Given, reach: Reach) -> list[str]:
    if not given.operands:
        return [f"{name} shows or changes what the shell holds"]
    pairs = [arg.text.partition("=") for arg in given.operands]
    for key, _, _ in pairs:
        if reason := why_guarded(key):
            reach.notes.guarded(reason)
    return [why_not(key, value) for key, _, value in pairs]
