"""`find` with an action: what it would run, or delete, and on which names.

The tests and the printing actions are in the table of known programs; here only what acts.
"""

from fnmatch import fnmatchcase
from itertools import pairwise

from bridle.commands.options import Arg
from bridle.commands.wrappers import Words, Wrapped

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
