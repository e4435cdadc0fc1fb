"""Git's configuration files: parse them as git does, and say whether a setting can run code. Pure.

A setting is harmless only if it is on the list; every other one counts as one that runs code.
Anything that is not certainly understood raises `ValueError`, and its file counts as unsafe.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n\0]|\\[^\n\0])*)")?\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)")
_BLANK = re.compile(r"(?:[ \t\r\n\f\v]|[#;][^\n]*)*")
_PIECE = re.compile(r'[^\\"\n#;]+|\\\n|\\[tbn\\"]|["#;\n]')
_COMMENT = re.compile(r"[^\n]*")
_BARE_KEY = re.compile(r"[ \t\r]*(?=\n|\Z)")
_SPACE = " \t\r\f\v"
_ESCAPES = {"\\t": "\t", "\\b": "\b", "\\n": "\n", "\\\\": "\\", '\\"': '"', "\\\n": ""}


class Setting(NamedTuple):
    """One setting. Section and key are in lower case; `value` is None for a key alone (true)."""

    section: str
    subsection: str | None
    key: str
    value: str | None


def parse_config(text: str) -> Iterator[Setting]:
    """Yield the settings of a file, in order. Raise `ValueError` for what git would refuse."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if "\0" in text:
        raise ValueError("a NUL character")
    section: tuple[str, str | None] | None = None
    position = _end_of(_BLANK, text, 0)
    while position < len(text):
        if header := _HEADER.match(text, position):
            section = _parse_section(header)
            position = header.end()
        elif section is not None and (key := _KEY.match(text, position)):
            value: str | None = None
            if key[2]:
                value, position = _parse_value(text, key.end())
            elif line_end := _BARE_KEY.match(text, key.end()):
                position = line_end.end()
            else:
                raise ValueError(f"something after a key at {key.end()}")
            yield Setting(*section, key[1].lower(), value)
        else:
            raise ValueError(f"neither a section nor a key at {position}")
        position = _end_of(_BLANK, text, position)


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _parse_section(header: re.Match[str]) -> tuple[str, str | None]:
    name, subsection = header[1].lower(), header[2]
    if subsection is not None:
        return name, re.sub(r"\\(.)", r"\1", subsection)
    first, dot, rest = name.partition(".")  # the old way to write one
    return first, rest if dot else None


def _parse_value(text: str, position: int) -> tuple[str, int]:
    """Return the value that begins at a position, and where it ends.

    White space counts inside quotes and between words.
    """
    pieces: list[str] = []
    spaces = 0  # since the last piece: they count only if another one follows
    is_quoted = False
    while position < len(text):
        match = _PIECE.match(text, position)
        if match is None:
            raise ValueError(f"an escape that git does not know at {position}")
        piece, position = match[0], match.end()
        if piece == "\n":
            break
        if piece in "#;" and not is_quoted:
            position = _end_of(_COMMENT, text, position)
            continue
        if is_quoted or piece[0] in '"\\':
            pieces.append(" " * spaces)
            spaces = 0
            if piece == '"':
                is_quoted = not is_quoted
            else:
                pieces.append(_ESCAPES.get(piece, piece))
            continue
        if any(pieces):
            spaces += len(piece) - len(piece.lstrip(_SPACE))
        if words := piece.strip(_SPACE):
            pieces += [" " * spaces, words]
            spaces = len(piece) - len(piece.rstrip(_SPACE))
    if is_quoted:
        raise ValueError("a quote that does not end")
    return "".join(pieces), position


_SWITCHES = ("", "true", "false", "yes", "no", "on", "off", "0", "1")
_CORE = (
    "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks "
    "autocrlf eol safecrlf checkroundtripencoding quotepath abbrev compression loosecompression "
    "bigfilethreshold untrackedcache sparsecheckout sparsecheckoutcone protecthfs protectntfs "
    "longpaths whitespace commentchar commentstring fscache trustctime checkstat "
    "deltabasecachelimit packedgitwindowsize packedgitlimit preloadindex splitindex fsyncmethod "
    "fsync fsyncobjectfiles createobject multipackindex commitgraph userefcache warnambiguousrefs "
    "hidedotfiles notesref filesreflocktimeout packedrefstimeout lockfilepid sharedrepository "
    "bigfilestreamingthreshold"
)
_DIFF = (
    "algorithm autorefreshindex colormoved colormovedws context dirstat ignoresubmodules "
    "indentheuristic interhunkcontext mnemonicprefix noprefix relative renamelimit renames "
    "statgraphwidth statnamewidth suppressblankempty wordregex wserrorhighlight srcprefix "
    "dstprefix"
)
_LFS = "git-lfs git-lfs.exe clean smudge filter-process --skip -- %f"
# keys that are harmless in a section, with or without a subsection; * stands for all
_KEYS = {
    "extensions": "worktreeconfig objectformat refstorage preciousobjects noop relativeworktrees",
    "remote": (
        "url pushurl fetch push mirror tagopt prune prunetags skipdefaultupdate skipfetchall "
        "followremotehead gh-resolved pushdefault"
    ),
    "user": "*",
    "author": "*",
    "committer": "*",
    "color": "*",
    "column": "*",
    "init": "defaultbranch",
    "push": "default followtags autosetupremote recursesubmodules gpgsign",
    "pull": "rebase ff octopus twohead",
    "fetch": "prune prunetags parallel writecommitgraph recursesubmodules output",
    "merge": "ff conflictstyle renames renamelimit log stat autostash tool guitool",
    "rebase": "autosquash autostash stat updaterefs missingcommitscheck abbreviatecommands",
    "commit": "gpgsign verbose cleanup status",
    "tag": "gpgsign sort forcesignannotated",
    "log": "date decorate abbrevcommit follow graphcolors mailmap showroot",
    "format": "pretty notes headers signoff subjectprefix suffix numbered",
    "status": "*",
    "blame": "coloring date showemail blankboundary showroot",
    "grep": "linenumber column patterntype extendedregexp threads fullname",
    "gc": "auto autopacklimit autodetach pruneexpire reflogexpire worktreepruneexpire",
    "pack": "*",
    "index": "*",
    "feature": "*",
    "maintenance": "*",
    "advice": "*",
    "checkout": "*",
    "rerere": "enabled autoupdate",
    "receive": "denycurrentbranch denynonfastforwards denydeletes fsckobjects autogc",
    "credential": "username usehttppath",
    "http": (  # how to reach a server; not which files to read or write on the way
        "postbuffer version sslverify sslversion lowspeedlimit lowspeedtime maxrequests "
        "followredirects useragent emptyauth proactiveauth extraheader proxy proxyauthmethod"
    ),
    "url": "insteadof pushinsteadof",
    "lfs": "repositoryformatversion access locksverify url concurrenttransfers",
    "gitflow": "*",  # of programs that git itself does not know
    "github": "*",
}


def is_harmless(setting: Setting) -> bool:
    """Is it certain that the setting makes git run nothing, and read nothing elsewhere?"""
    section, subsection, key, value = setting
    match section:
        case "core":
            if subsection is not None:
                return False
            return is_switch(value) if key == "fsmonitor" else key in _CORE.split()
        case "diff" if subsection is not None:  # a driver: headings of hunks, and what is a word
            return key in ("xfuncname", "funcname", "wordregex", "binary", "algorithm")
        case "diff":
            return value in ("short", "log") if key == "submodule" else key in _DIFF.split()
        case "filter":  # git's own extension for large files, spelled as it spells itself
            if subsection != "lfs" or key == "required":
                return subsection == "lfs" and is_switch(value)
            own = (value or "").split()
            return own[:1] == ["git-lfs"] and set(own).issubset(_LFS.split())
        case "submodule":
            if key == "update":
                return value in ("checkout", "rebase", "merge", "none")
            return key in ("url", "active", "branch", "fetchrecursesubmodules", "ignore")
        case "pager":
            return is_switch(value)
        case "branch":
            return key != "mergeoptions"  # they name a strategy, or a file
        case "gpg":
            return key == "format" and subsection is None
    keys = _KEYS.get(section, "").split()
    return "*" in keys or key in keys


def is_switch(value: str | None) -> bool:
    """Is it a word for yes or no, and not the name of a program?"""
    return value is None or value.lower() in _SWITCHES
