"""What flags and kinds of operands cannot say about a program. Each check returns reasons to ask.

An awk program or a sed script is harmless only if a strict reader understands all of it.
"""

import re
from posixpath import join

from bridle.command_analysis.argv import Arg, Arguments
from bridle.command_analysis.paths import STREAMS, PathAccess, search_folder, shorten
from bridle.command_analysis.variables import reason_for_person, reason_to_ask

# awk: programs that only print.

_FORBIDDEN = re.compile(
    r"system|getline|close|fflush|ARGV|ARGC|ARGIND|SYMTAB|FUNCTAB|PROCINFO|@|#|\\\n|extension"
)
_WRITES = re.compile(r'>>|>\s*"')
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<number>\d+(?:\.\d+)?)|(?P<mark>\|\||&&|>=|<=|==|!=|\+\+|--|[-+*%^]=|\n|.)"""
)
# awks disagree about a slash, a bracket and an empty set inside of brackets, and an escaped end.
_REGEX = re.compile(r"""/(?:[^/\\\n\["]|\\[^\n"]|\[\^?(?:[^\]\[\\\n/"]|\\[^\]\[\n/"])+\])+/""")
_BEFORE_REGEX = frozenset({"", "(", ",", "{", "}", ";", "!", "~", "&&", "||", "\n"})
_VALUES = frozenset({"word", "number", "string"})
# Words after which a slash may begin a regular expression: keywords, and functions without ().
_KEYWORDS = frozenset(
    [
        *("print", "printf", "return", "in", "else", "do", "case", "exit", "length", "delete"),
        *("next", "nextfile", "break", "continue", "default", "switch", "if", "while", "for"),
        *("function", "func", "BEGIN", "END", "BEGINFILE", "ENDFILE"),
    ]
)
_PRINTS = frozenset({"print", "printf"})
_MAX_AWK = 4096


def awk_only_prints(program: str) -> bool:
    """Return whether an awk program does nothing but print."""
    if len(program) > _MAX_AWK or _FORBIDDEN.search(program):
        return False
    if "print" not in program:
        return True
    if "|" in program.replace("||", "") or _WRITES.search(program):
        return False
    return ">" not in program or _only_compares(program)


def _only_compares(program: str) -> bool:
    """Return whether every `>` is a comparison."""
    index, braces, parens = 0, 0, 0
    last, kind = "", ""
    while index < len(program):
        if program[index] == "/":
            index, last, kind = _after_slash(program, index, last, kind)
            if index < 0:
                return False
            continue
        match = _TOKEN.match(program, index)
        if match is None:
            return False
        index = match.end()
        if match.lastgroup == "space":
            continue
        last, kind = match.group(), match.lastgroup or ""
        braces += (last == "{") - (last == "}")
        parens += (last == "(") - (last == ")")
        if not _is_harmless(last, kind, braces, parens):
            return False
    return braces == 0 and parens == 0


def _after_slash(program: str, index: int, last: str, kind: str) -> tuple[int, str, str]:
    """Read a slash as a division or a regular expression. Return where that ends, and its token.

    If it could be either, the end is -1.
    """
    if (kind in _VALUES and last not in _KEYWORDS) or last == "]":
        return index + 1, "/", "mark"
    match = _REGEX.match(program, index)
    if last not in _BEFORE_REGEX or match is None:
        return -1, "", ""
    return match.end(), match.group(), "string"


def _is_harmless(token: str, kind: str, braces: int, parens: int) -> bool:
    if kind == "word":  # `for (…; …; print > file)` has a statement in its parentheses
        return token not in _PRINTS or parens == 0
    if kind != "mark":
        return True
    if token == ">":  # inside braces it writes a file, unless it is in parentheses
        return braces == 0 or parens > 0
    return token not in ("|", '"', "`", "\\", "'")


# sed: scripts that only print.

_ADDRESS = re.compile(r"[ \t]*(?:(\d+)(?:~\d+)?|\$|(/)|\\(.))")
_SECOND_ADDRESS = re.compile(r"[ \t]*,[ \t]*(?:[+~]?\d+|\$|(/)|\\(.))")
_PLAIN_COMMAND = re.compile(r"[pdDgGhHxPnN=zl]")
_QUIT = re.compile(r"[qQ][ \t]*\d*")
_TEXT_COMMAND = re.compile(r"[aic][ \t]*[^\\\s][^\\\n]*(?=\n|\Z)")
_BRANCH = re.compile(r"[btT:][ \t]*[A-Za-z0-9_]*(?=[ \t]*(?:[;\n}]|\Z))")
_FLAGS = re.compile(r"[gpiIm0-9]*")
_END = re.compile(r"[ \t]*(?:[;\n}]|\Z)")
_BRACKET = re.compile(r"\[\^?(?:[^][\\\n]|\\[A-Za-z0-9.])+\]")
_MAX_SED = 4096


def sed_only_prints(script: str) -> bool:
    """Return whether a sed script does nothing but print what it reads, perhaps changed."""
    if len(script) > _MAX_SED:
        return False
    index, depth = _skip_blanks(script, 0), 0
    while index < len(script):
        opened, index = _command_end(script, index)
        depth += opened
        if index < 0 or depth < 0:
            return False
        index = _skip_blanks(script, index)
    return depth == 0


def _command_end(script: str, index: int) -> tuple[int, int]:
    """Return how many braces a command opens, and where it ends: -1 if it is not harmless."""
    if script[index] == "#" and index > 0:
        return 0, script.find("\n", index) + 1 or len(script)
    if script[index] == "}":
        return -1, index + 1
    start = _after_addresses(script, index)
    if start < 0 or start >= len(script):
        return 0, -1
    if script[start] == "{":
        return 1, start + 1
    return 0, _harmless_end(script, start)


def _skip_blanks(script: str, index: int) -> int:
    while index < len(script) and script[index] in " \t\n;":
        index += 1
    return index


def _after_addresses(script: str, index: int) -> int:
    """Return where the command begins, after its addresses; -1 if they are not understood."""
    index = _after_address(script, index, _ADDRESS)
    if index >= 0:
        index = _after_address(script, index, _SECOND_ADDRESS)
    if index < 0:
        return -1
    while index < len(script) and script[index] in " \t!":
        index += 1
    return index


def _after_address(script: str, index: int, pattern: re.Pattern[str]) -> int:
    match = pattern.match(script, index)
    if match is None:
        return index
    delimiter = match[match.lastindex] if match.lastindex and match.lastindex > 1 else ""
    if pattern is _SECOND_ADDRESS and match.lastindex:
        delimiter = match[match.lastindex]
    if not delimiter:
        return match.end()
    if delimiter in "[]\\":
        return -1
    end = _after_delimiter(script, match.end(), delimiter)
    while 0 <= end < len(script) and script[end] in "IM":
        end += 1
    return end


def _harmless_end(script: str, index: int) -> int:
    """Return where the command ends if it is harmless, else -1."""
    letter = script[index]
    if letter in "sy":
        end = _substitution_end(script, index)
    else:
        shapes = (_PLAIN_COMMAND, _QUIT, _TEXT_COMMAND, _BRANCH)
        match = next((m for m in (pattern.match(script, index) for pattern in shapes) if m), None)
        end = match.end() if match else -1
    if end < 0 or not _END.match(script, end):
        return -1
    return end


def _substitution_end(script: str, index: int) -> int:
    delimiter = script[index + 1 : index + 2]
    if not delimiter or delimiter in "\\\n \t;[]" or delimiter.isalnum():
        return -1
    end = _after_delimiter(script, index + 2, delimiter)
    end = _after_delimiter(script, end, delimiter) if end >= 0 else -1
    if end < 0:
        return -1
    flags = _FLAGS.match(script, end) if script[index] == "s" else None
    return flags.end() if flags else end


def _after_delimiter(script: str, index: int, delimiter: str) -> int:
    """Return the index after the next delimiter, -1 if a bracket makes that uncertain."""
    while index < len(script):
        letter = script[index]
        if letter == delimiter:
            return index + 1
        if letter == "\n":
            return -1
        if letter == "\\":
            index += 2
        elif letter == "[":
            match = _BRACKET.match(script, index)
            if match is None or delimiter in match.group():
                return -1
            index = match.end()
        else:
            index += 1
    return -1


_AWK_FILE = re.compile(r'(>>?|<)\s*"([^"\n]{1,512})"')
_SED_FILE = re.compile(
    r"(?:^|[\s;{}/!$,\d|#gpIiMme])([rRwW])[ \t]*([^\s;{}][^\n;}]{0,512})", re.MULTILINE
)


def _note_awk_paths(program: str, access: PathAccess) -> None:
    """Note the files that an awk program names after `>` and `<`."""
    for sign, path in _AWK_FILE.findall(program):
        _note_file(path, access, is_written=sign != "<")


def _note_sed_paths(script: str, access: PathAccess) -> None:
    """Note the files that a sed script names after `w` and `r`."""
    for letter, path in _SED_FILE.findall(script):
        _note_file(path.strip(), access, is_written=letter in "wW")


def _note_file(path: str, access: PathAccess, *, is_written: bool) -> None:
    if is_written:
        access.add_write(Arg(path))
    else:
        access.add_read(Arg(path))


# The checks.


def sed(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """A sed script runs unasked only if it does nothing but print. `-i` edits files."""
    scripts = arguments.values("-e", "--expression")
    if not scripts or any(flag.late for flag in arguments.flags):  # some take no flags there
        scripts += [arg.text for arg in arguments.operands[:1]]
    in_place = arguments.has("-i --in-place")
    files = arguments.operands if arguments.has("-e --expression") else arguments.operands[1:]
    reasons = [access.add_write(arg) for arg in files] if in_place else []
    if not all(sed_only_prints(script) for script in scripts):
        for script in scripts:
            _note_sed_paths(script, access)
        reasons.append("the sed script may do more than print")
    return reasons + (["edits files in place"] if in_place else [])


def awk(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """An awk program runs unasked only if it does nothing but print."""
    if not arguments.operands or not awk_only_prints(arguments.operands[0].text):
        for arg in arguments.operands[:1]:
            _note_awk_paths(arg.text, access)
        return ["the awk program may do more than print"]
    return []


_RECURSIVE_FLAGS = "-r -R --recursive --dereference-recursive"
_PATTERN_FLAGS = "-e -f --regexp --file"
_UNRESTRICTED_FLAGS = (
    "-u -uu -uuu --unrestricted -. --hidden --no-ignore --no-ignore-vcs --no-ignore-dot "
    "--no-ignore-parent --no-ignore-global --no-ignore-exclude --no-ignore-files"
)


def grep_folders(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """grep -r reads every file of a folder."""
    ways = arguments.values("-d", "--directories")
    if not arguments.has(_RECURSIVE_FLAGS) and not any("recurse".startswith(way) for way in ways):
        return []
    folders = arguments.operands if arguments.has(_PATTERN_FLAGS) else arguments.operands[1:]
    filters = [flag.name for flag in arguments.flags if flag.name in _NAME_FILTERS]
    names = tuple(arguments.values("--include")) if filters[:1] == ["--include"] else ()
    return [reason for arg in folders or [Arg(".")] for reason in search_folder(arg, names, access)]


_NAME_FILTERS = ("--include", "--exclude", "--exclude-from")


def diff_folders(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """diff of two folders reads every file that is in both."""
    if len(arguments.operands) != 2:
        return []
    return [reason for arg in arguments.operands for reason in search_folder(arg, (), access)]


def ripgrep_hidden(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """rg leaves hidden and ignored files out, unless a flag includes them or a glob names them."""
    globs = [glob for glob in arguments.values("-g", "--glob", "--iglob") if glob[:1] != "!"]
    if not globs and not arguments.has(_UNRESTRICTED_FLAGS):
        return []
    first = 0 if arguments.has(f"{_PATTERN_FLAGS} --files") else 1
    names = tuple(glob.rpartition("/")[2].replace("**", "*") or "*" for glob in globs)
    folders = arguments.operands[first:] or [Arg(".")]
    return [reason for arg in folders for reason in search_folder(arg, names, access)]


def jq(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """A filter may name other files to read."""
    filters = arguments.operands[:1]
    if any(
        re.search(r"\b(?:import|include|modulemeta|load\w*|input_filename)\b", f.text)
        for f in filters
    ):
        return [f"the {name} filter may read other files"]
    return []


_YQ = re.compile(r"load|eval|env|system|exec|import|include|modulemeta|input_filename")
_YQ_SUBCOMMANDS = frozenset({"e", "eval", "ea", "eval-all"})


def yq(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """Any operand may be the filter, and a filter may read other files."""
    words = [arg.text for arg in arguments.operands]
    filters = words[1:] if words and words[0] in _YQ_SUBCOMMANDS else words
    if any(map(_YQ.search, [*filters, *arguments.values("-o", "-p")])):
        return ["the yq filter may read other files, or the environment"]
    return []


def response_files(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """`@file` stands for words that are in a file, anywhere on the command line."""
    words = [*arguments.operands, *(flag.value for flag in arguments.flags if flag.value)]
    return [f"{name} takes its words from {shorten(a.text)}" for a in words if a.text[:1] == "@"]


_UNARY = frozenset(
    [
        *("-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-b", "-c"),
        *("-p", "-S", "-u", "-g", "-k", "-O", "-G", "-N"),
    ]
)
_BINARY = frozenset(
    ["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "<", ">", "-nt", "-ot", "-ef"]
)
_OTHER = frozenset(["-z", "-n", "-t", "!", "(", ")", "-a", "-o", "]"])


def test_operators(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """`test` and `[` look at files; `-v` and similar operators evaluate their operand."""
    words = arguments.operands
    reasons = []
    for index, arg in enumerate(words):
        before = words[index - 1].text if index else ""
        after = words[index + 1].text if index + 1 < len(words) else ""
        if (
            (before in _UNARY and arg.text not in _BINARY)
            or before in ("-nt", "-ot", "-ef")
            or after in ("-nt", "-ot", "-ef")
        ):
            reasons.append(access.add_read(arg, inside=False))
        elif re.fullmatch(r"-[A-Za-z]+", arg.text) and arg.text not in (_UNARY | _BINARY | _OTHER):
            reasons.append(f"{name} {arg.text} is not known to be harmless")
    return reasons


def printf(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """`%n` sets a variable."""
    text = arguments.operands[0].text if arguments.operands else ""
    return ["printf sets a variable"] if re.search(r"%[^%A-Za-z]*[hjlLtz]*n", text) else []


def date(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """An operand without `+` sets the clock."""
    return ["sets the clock" for arg in arguments.operands if not arg.text.startswith("+")]


def tar(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """To list an archive reads it; anything else packs or unpacks."""
    archives = [Arg(value) for value in arguments.values("-f", "--file")]
    letters = "" if arguments.flags or not arguments.operands else arguments.operands[0].text
    if letters.isalpha() and "f" in letters:
        archives = arguments.operands[1:2]
    if arguments.has("-c -r -u --create") or not {*"cru"}.isdisjoint(letters):
        first = (1 + ("f" in letters)) if letters else 0
        members = [access.add_read(arg) for arg in arguments.operands[first:]]
        return [*(access.add_write(arg) for arg in archives), *members, "packs files"]
    plain = not letters or (set(letters) <= set("tvzjJf") and letters.endswith("f"))
    lists = arguments.has("-t --list") or "t" in letters
    read = ["reads an archive elsewhere" if ":" in a.text else access.add_read(a) for a in archives]
    if arguments.has("-x --extract") or not (lists and plain and archives):
        read.append("unpacks files")
    return read


def unzip(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """Without a flag that lists or prints, files are unpacked."""
    return [] if arguments.has("-l -v -t -p") else ["unpacks files"]


def dd(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """`if=` is read and `of=` is written; a device is never written."""
    reasons = ["copies bytes"]
    for arg in arguments.operands:
        key, _, value = arg.text.partition("=")
        if key == "if":
            reasons.append(access.add_read(Arg(value, arg.known)))
        elif key == "of":
            reasons.append(access.add_write(Arg(value, arg.known)))
            if value.startswith("/dev/") and value not in STREAMS:
                access.findings.forbid(f"writes to the device {shorten(value)}")
    return reasons


def git_repository(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """The configuration of a repository may make git run programs, which no rule is about."""
    if not arguments.operands:
        return []
    paths = arguments.values("--git-dir")
    folders = [join(access.machine.root, access.place(path).path) for path in paths]
    if not all(map(access.machine.is_repository_safe, [access.folder, *folders])):
        access.findings.require_person(_RUNS_PROGRAMS)
        return [_RUNS_PROGRAMS]
    return []


_RUNS_PROGRAMS = "this repository's git configuration can run programs"
_SHOWS_SIGNATURE = re.compile(r"%G|%\(signature").search


def git_format(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """`%G?` makes git run a program that checks signatures."""
    formats = arguments.values("--format", "--pretty")
    return ["checks signatures with a program" for text in formats if _SHOWS_SIGNATURE(text)]


def git_apply(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """`git apply` changes nothing with `--check` or alike, unless there is `--apply`, too."""
    only_checks = arguments.has("--check --stat --numstat --summary")
    return (
        []
        if only_checks and not arguments.has("--apply")
        else ["changes files of the working tree"]
    )


def git_symbolic_ref(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """A second operand is what the reference is set to."""
    return ["changes a reference"] if len(arguments.operands) > 1 else []


_CODE_KEYS = re.compile(
    r"(?:core\.(?:hookspath|editor|pager|sshcommand|fsmonitor|askpass|gitproxy|attributesfile)"
    r"|alias\.|credential\.|filter\.|diff\..*|merge\..*|gpg\.|include|pager\.|sequence\.|url\."
    r"|init\.templatedir|uploadpack\.|receive\.|protocol\.|http\.|remote\..*\.(?:vcs|uploadpack)"
    r"|submodule\.|man\.|browser\.|difftool|mergetool|sendemail|interactive\.|trailer\.)",
    re.IGNORECASE,
)
_WRITE_FLAGS = "--unset --unset-all --add --replace-all"
_READ_FLAGS = "--get --get-all --get-regexp --get-urlmatch --list -l --show-origin --get-color"


def git_config(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """`git config` reads if there is a flag that says so, or just one word; else it writes."""
    words = [arg.text for arg in arguments.operands]
    has_late_flag = any(flag.late for flag in arguments.flags)  # `a.b --get` sets `a.b`
    early_flags = {flag.name for flag in arguments.flags if not flag.late}
    is_name = words == ["list"] or (len(words) == 1 and "." in words[0] and not has_late_flag)
    reads = not early_flags.isdisjoint(_READ_FLAGS.split())
    reads = reads or (is_name and not arguments.unknown_flag)
    if reads and not arguments.has(_WRITE_FLAGS):
        return []
    if any(_CODE_KEYS.match(word) for word in words):
        access.findings.forbid("sets a git option that runs programs")
    elif arguments.has("--global --system"):
        access.findings.forbid("changes the person's own git configuration")
    else:
        access.findings.require_person("changes the repository's git configuration")
    return ["changes the git configuration"]


_IN_PLACE = re.compile(r"-[A-Za-z0]*i").match  # perl -pi


def _is_in_place(arguments: Arguments) -> bool:
    return any(map(_IN_PLACE, [*(flag.name for flag in arguments.flags), arguments.unknown_flag]))


def interpreter(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """Code that is given as a word, or through stdin, may do anything."""
    code = " ".join(arguments.values("-c", "-e", "-E", "-r", "--eval", "-p", "--print"))
    if "socket" in code and re.search(r"dup2|pty|/bin/(?:ba)?sh|exec\b", code):
        access.findings.forbid("opens a shell to another machine")
    if name.startswith(("perl", "ruby")) and _is_in_place(arguments):
        for arg in arguments.operands:  # one of them may be the script
            if arg.text.startswith("/"):
                access.add_write(arg)
    if arguments.has("-c -e -E -r --eval -p --print"):
        return ["runs code that is an argument"]
    return [] if arguments.operands else ["runs code"]


def go_env(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """`go env NAME=VALUE` sets a variable."""
    return ["sets a variable" for arg in arguments.operands if "=" in arg.text]


_PLAIN_VARIABLE = re.compile(
    r"(?!SHELL|\.SHELLFLAGS|MAKE)[A-Za-z_]\w*[?+:]*=[\w.+,-][\w./+,-]*|[^=]*"
)


def make(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """A variable on make's command line may be anything that a recipe runs."""
    unusual = [arg.text for arg in arguments.operands if not _PLAIN_VARIABLE.fullmatch(arg.text)]
    reasons = [f"make is given {shorten(text)}" for text in unusual]
    return [*task_names(name, arguments, access), *reasons]


_LEAVES_WORKSPACE = re.compile(
    r"(?:.*[^A-Za-z])?(?i:deploy|publish|release|(?:un)?install|push|upload)(?![a-z])"
).match
_TASK_FLAGS = ("-e", "-s", "-t", "--sessions", "--target")  # flags that name targets


def task_names(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """A task with a name such as `deploy` changes more than the workspace, so it is not a build."""
    words = [arg.text for arg in arguments.operands] + arguments.values(*_TASK_FLAGS)
    return [
        f"{name} {shorten(word)} may leave the workspace"
        for word in words
        if _LEAVES_WORKSPACE(word)
    ]


def maven_goals(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """A goal of a plugin (`plugin:goal`) may do anything."""
    words = [arg.text for arg in arguments.operands] + arguments.values("-D")
    unusual = [word for word in words if ":" in word or "exec" in word]
    reasons = [f"{name} {shorten(word)} may run anything" for word in unusual]
    return [*task_names(name, arguments, access), *reasons]


def ps(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """`ps e` shows the environment of other programs."""
    letters = any(arg.text.isalpha() and "e" in arg.text.lower() for arg in arguments.operands)
    columns = any("environ" in text for text in arguments.values("-o", "-O", "--format"))
    return ["shows the environment of other programs"] if letters or columns else []


def cd(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """Without an operand it goes to the home folder."""
    return [] if arguments.operands else ["goes to the home folder, outside the workspace"]


_STRICT_OPTIONS = frozenset({"pipefail", "errexit", "nounset", "xtrace"})


def set_options(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """Only options that make a script stricter are harmless."""
    options = set(arguments.values("-o"))
    if arguments.operands or not arguments.flags or not options <= _STRICT_OPTIONS:
        return ["changes what later commands do"]
    return []


def assignments(name: str, arguments: Arguments, access: PathAccess) -> list[str]:
    """`export`, `declare` and alike: the variables that they set."""
    if not arguments.operands:
        return [f"{name} shows or changes variables of the shell"]
    pairs = [arg.text.partition("=") for arg in arguments.operands]
    for variable, _, _ in pairs:
        if reason := reason_for_person(variable):
            access.findings.require_person(reason)
    return [reason_to_ask(variable, value) for variable, _, value in pairs]
