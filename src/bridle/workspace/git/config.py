"""Git's configuration files: read as git reads them, and whether a setting can run code. Pure.

A setting is harmless only where it stands on the list; everything else counts as one that runs
code. What cannot be read with certainty raises `ValueError`, and its file counts as hostile.
"""

import re
from collections.abc import Callable, Iterator
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
    """One setting. Section and key in small letters; `value` is None for a key alone (true)."""

    section: str
    subsection: str | None
    key: str
    value: str | None


def parse(text: str) -> Iterator[Setting]:
    """The settings of a file, in order. Raise `ValueError` for what git itself would refuse."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if "\0" in text:
        raise ValueError("a NUL character")
    section: tuple[str, str | None] | None = None
    at = _end(_BLANK, text, 0)
    while at < len(text):
        if header := _HEADER.match(text, at):
            section = _section(header)
            at = header.end()
        elif section is not None and (key := _KEY.match(text, at)):
            value, at = _value(text, key.end()) if key[2] else (None, _line_end(text, key.end()))
            yield Setting(*section, key[1].lower(), value)
        else:
            raise ValueError(f"neither a section nor a key at {at}")
        at = _end(_BLANK, text, at)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _section(header: re.Match[str]) -> tuple[str, str | None]:
    name, subsection = header[1].lower(), header[2]
    if subsection is not None:
        return name, re.sub(r"\\(.)", r"\1", subsection)
    first, dot, rest = name.partition(".")  # the old way to write one
    return first, rest if dot else None


def _line_end(text: str, at: int) -> int:
    """After a key without a value nothing may follow on its line."""
    found = _BARE_KEY.match(text, at)
    if found is None:
        raise ValueError(f"something after a key at {at}")
    return found.end()


def _value(text: str, at: int) -> tuple[str, int]:
    """The value that begins there, and where it ends."""
    value = _Value()
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            raise ValueError(f"an escape that git does not know at {at}")
        piece, at = found[0], found.end()
        if piece == "\n":
            break
        if piece in "#;" and not value.quoted:
            at = _end(_COMMENT, text, at)
        else:
            value.add(piece)
    if value.quoted:
        raise ValueError("a quote that does not end")
    return value.text, at


class _Value:
    """A value as it is put together: white space counts inside quotes, and between words."""

    def __init__(self) -> None:
        self.quoted = False
        self._pieces: list[str] = []
        self._spaces = 0

    @property
    def text(self) -> str:
        """What was put together so far."""
        return "".join(self._pieces)

    def add(self, piece: str) -> None:
        """One more piece: a quote, an escape, or characters that stand for themselves."""
        if self.quoted or piece[0] in '"\\':
            self._flush()
        if piece == '"':
            self.quoted = not self.quoted
        elif self.quoted or piece[0] == "\\":
            self._keep(_ESCAPES.get(piece, piece))
        else:
            self._add_plain(piece)

    def _add_plain(self, piece: str) -> None:
        if self._pieces:
            self._spaces += len(piece) - len(piece.lstrip(_SPACE))
        words = piece.strip(_SPACE)
        if words:
            self._flush()
            self._keep(words)
            self._spaces = len(piece) - len(piece.rstrip(_SPACE))

    def _flush(self) -> None:
        self._keep(" " * self._spaces)
        self._spaces = 0

    def _keep(self, text: str) -> None:
        if text:
            self._pieces.append(text)


def is_harmless(setting: Setting) -> bool:
    """Is it certain that the setting makes git run nothing, and read nothing elsewhere?"""
    rule = _SECTIONS.get(setting.section)
    return rule is not None and rule(setting)


def is_switch(value: str | None) -> bool:
    """Is it a word for yes or no, and not the name of a program?"""
    return value is None or value.lower() in _SWITCHES


_SWITCHES = ("", "true", "false", "yes", "no", "on", "off", "0", "1")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CORE = _words(
    "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks "
    "autocrlf eol safecrlf checkroundtripencoding quotepath abbrev compression loosecompression "
    "bigfilethreshold untrackedcache sparsecheckout sparsecheckoutcone protecthfs protectntfs "
    "longpaths whitespace commentchar commentstring fscache trustctime checkstat "
    "deltabasecachelimit packedgitwindowsize packedgitlimit preloadindex "
    "splitindex fsyncmethod fsync fsyncobjectfiles "
    "createobject multipackindex commitgraph userefcache warnambiguousrefs hidedotfiles notesref "
    "filesreflocktimeout packedrefstimeout lockfilepid sharedrepository bigfilestreamingthreshold"
)
_DIFF = _words(
    "algorithm autorefreshindex colormoved colormovedws context dirstat ignoresubmodules "
    "indentheuristic interhunkcontext mnemonicprefix noprefix relative renamelimit renames "
    "statgraphwidth statnamewidth suppressblankempty wordregex wserrorhighlight srcprefix dstprefix"
)
_LFS = _words("git-lfs git-lfs.exe clean smudge filter-process --skip -- %f")


def _core(setting: Setting) -> bool:
    if setting.subsection is not None:
        return False
    if setting.key == "fsmonitor":
        return is_switch(setting.value)
    return setting.key in _CORE


def _diff(setting: Setting) -> bool:
    if setting.subsection is not None:  # a driver: how hunks are headed, and words told apart
        return setting.key in ("xfuncname", "funcname", "wordregex", "binary", "algorithm")
    if setting.key == "submodule":
        return setting.value in ("short", "log")
    return setting.key in _DIFF


def _filter(setting: Setting) -> bool:
    """Git's own extension for large files, spelled as it spells itself."""
    if setting.subsection != "lfs":
        return False
    if setting.key == "required":
        return is_switch(setting.value)
    own = (setting.value or "").split()
    return own[:1] == ["git-lfs"] and _LFS.issuperset(own)


def _submodule(setting: Setting) -> bool:
    if setting.key == "update":
        return setting.value in ("checkout", "rebase", "merge", "none")
    return setting.key in ("url", "active", "branch", "fetchrecursesubmodules", "ignore")


def _named(text: str) -> Callable[[Setting], bool]:
    """Keys that are harmless with or without a subsection."""
    keys = _words(text)
    return lambda setting: setting.key in keys


def _anything(setting: Setting) -> bool:
    return True


_SECTIONS: dict[str, Callable[[Setting], bool]] = {
    "core": _core,
    "diff": _diff,
    "filter": _filter,
    "submodule": _submodule,
    "pager": lambda setting: is_switch(setting.value),
    "extensions": _named(
        "worktreeconfig objectformat refstorage preciousobjects noop relativeworktrees"
    ),
    "remote": _named(
        "url pushurl fetch push mirror tagopt prune prunetags skipdefaultupdate skipfetchall "
        "followremotehead gh-resolved pushdefault"
    ),
    "branch": lambda setting: setting.key != "mergeoptions",  # they name a strategy, or a file
    "user": _anything,
    "author": _anything,
    "committer": _anything,
    "color": _anything,
    "column": _anything,
    "init": _named("defaultbranch"),
    "push": _named("default followtags autosetupremote recursesubmodules gpgsign"),
    "pull": _named("rebase ff octopus twohead"),
    "fetch": _named("prune prunetags parallel writecommitgraph recursesubmodules output"),
    "merge": _named("ff conflictstyle renames renamelimit log stat autostash tool guitool"),
    "rebase": _named("autosquash autostash stat updaterefs missingcommitscheck abbreviatecommands"),
    "commit": _named("gpgsign verbose cleanup status"),
    "tag": _named("gpgsign sort forcesignannotated"),
    "gpg": lambda setting: setting.key == "format" and setting.subsection is None,
    "log": _named("date decorate abbrevcommit follow graphcolors mailmap showroot"),
    "format": _named("pretty notes headers signoff subjectprefix suffix numbered"),
    "status": _anything,
    "blame": _named("coloring date showemail blankboundary showroot"),
    "grep": _named("linenumber column patterntype extendedregexp threads fullname"),
    "gc": _named("auto autopacklimit autodetach pruneexpire reflogexpire worktreepruneexpire"),
    "pack": _anything,
    "index": _anything,
    "feature": _anything,
    "maintenance": _anything,
    "advice": _anything,
    "checkout": _anything,
    "rerere": _named("enabled autoupdate"),
    "receive": _named("denycurrentbranch denynonfastforwards denydeletes fsckobjects autogc"),
    "credential": _named("username usehttppath"),
    "http": _named(  # how to reach a server; not which files to read or write on the way
        "postbuffer version sslverify sslversion lowspeedlimit lowspeedtime maxrequests "
        "followredirects useragent emptyauth proactiveauth extraheader proxy proxyauthmethod"
    ),
    "url": _named("insteadof pushinsteadof"),
    "lfs": _named("repositoryformatversion access locksverify url concurrenttransfers"),
    "gitflow": _anything,  # of programs that git itself does not know
    "github": _anything,
}
