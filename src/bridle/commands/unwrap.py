"""What stands inside a command: `timeout 5 ls` runs `ls`, `sh -c 'ls'` runs what is written there.

Says what would be run, and how sure that is; judging it is not done here.
"""

import re

from bridle.commands.find import find_inner
from bridle.commands.notes import spelled
from bridle.commands.options import Arg, Given, sort_words
from bridle.commands.program import flag_table
from bridle.commands.wrappers import CERTAIN_SHELLS, SHELLS, WRAPPERS, Words, Wrapped, Wrapper

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL).fullmatch
_SHELL_LETTERS = frozenset("celuxv")
_SHELL_OPTIONS = frozenset({"pipefail", "errexit", "nounset", "xtrace", "noglob", "noclobber"})
_BASH_ONLY = re.compile(
    r"\$'|&>|\|&|\[\[|<\(|>\(|<<<|\$\"|\bfunction\b|\bsource\b|\{[^{}]*[,.]|\[\^"
)
_GUESSES = 4  # where the inner command may begin, when a flag is strange


def unwrap(name: str, args: list[Arg]) -> Wrapped | None:
    """What a command runs inside, if it is one that does; `args` are the words after its name."""
    if name in SHELLS:
        return _shell(name, args)
    if name == "xargs":
        return _xargs(args)
    if name in ("find", "gfind"):
        return find_inner(args)
    if name == "git":
        return _git(args)
    if name in ("fd", "fdfind"):
        return _after(args, ("-x", "-X", "--exec", "--exec-batch"), "runs a command on every file")
    if name == "trap":
        return (
            Wrapped(
                texts=tuple(args[:1]),
                does="changes",
                sure=False,
                reason="sets what runs on a signal",
            )
            if len(args) > 1
            else None
        )
    wrapper = WRAPPERS.get(name)
    return _wrapper(name, wrapper, args) if wrapper is not None else None


def _wrapper(name: str, wrapper: Wrapper, args: list[Arg]) -> Wrapped | None:
    if wrapper.verb:
        found = next((i for i, arg in enumerate(args) if arg.text in wrapper.verb.split()), None)
        if found is None or any(not arg.text.startswith("-") for arg in args[:found]):
            return None
        args = args[found + 1 :]
    if name == "command" and args and args[0].text in ("-v", "-V", "-pv", "-pV"):
        return None
    given = sort_words(args, flag_table(wrapper.flags), stop=wrapper.skip < 90)
    assigned, inner = _assigned(given.operands) if wrapper.assigns else ((), given.operands)
    inner = inner[wrapper.skip :]
    texts = tuple(f.value for f in given.flags if f.value and f.name in wrapper.text.split())
    if not inner and not texts and not given.strange:
        return None
    return _built(name, wrapper, given, assigned, tuple(inner), texts)


def _built(
    name: str,
    wrapper: Wrapper,
    given: Given,
    assigned: tuple[tuple[str, str], ...],
    inner: Words,
    texts: tuple[Arg, ...],
) -> Wrapped:
    if wrapper.joined and inner:
        texts = (*texts, _joined(inner, in_bash=name == "eval"))
        inner = ()
    commands: tuple[Words, ...] = (inner,) if inner else ()
    opaque = "how env splits its words is not certain" if texts and name == "env" else ""
    if given.strange:
        opaque = f"{name} {given.strange[:60]} is not understood"
        words = tuple(given.operands)
        commands = tuple(words[i:] for i in range(min(_GUESSES, len(words))))
    folder = next((f.value for f in given.flags if f.kind == "=cd"), None)
    if name == "npx" and given.has("--no-install --no"):
        wrapper = WRAPPERS["bundle"]  # what the project has installed, and nothing else
    return Wrapped(
        commands,
        texts,
        wrapper.does,
        wrapper.reason,
        not opaque and not wrapper.elsewhere,
        opaque,
        assigned,
        folder,
        wrapper.elsewhere,
        bool(opaque) or wrapper.elsewhere,
        network=wrapper.network,
    )


def _joined(words: Words, *, in_bash: bool) -> Arg:
    """Words as one text for a shell. Names that a pattern gave may hold anything: not known."""
    spelling = dict.fromkeys(word.pattern or word.text for word in words)
    clear = all(word.known and not word.pattern for word in words)
    clear = clear and (in_bash or not any(_BASH_ONLY.search(word.text) for word in words))
    return Arg(" ".join(word.text for word in words) if clear else " ".join(spelling), clear)


def _assigned(operands: list[Arg]) -> tuple[tuple[tuple[str, str], ...], list[Arg]]:
    """NAME=VALUE before the command, and the rest."""
    found: list[tuple[str, str]] = []
    for at, operand in enumerate(operands):
        match = ASSIGNMENT(operand.text)
        if match is None:
            return tuple(found), operands[at:]
        found.append((match[1], match[2]))
    return tuple(found), []


def _shell(name: str, args: list[Arg]) -> Wrapped | None:
    """`bash -euo pipefail -c 'text'`; anything else that a shell runs is a script."""
    clear, at, wants = True, 0, False
    while at < len(args) and args[at].text[:1] in ("-", "+") and args[at].text not in ("-", "--"):
        text = args[at].text
        at += 1
        if text.startswith("--"):
            clear = False
            continue
        letters = text[1:]
        wants = wants or "c" in letters
        if letters.endswith("o") and at < len(args):
            clear = clear and args[at].text in _SHELL_OPTIONS
            at, letters = at + 1, letters[:-1]
        clear = clear and set(letters) <= _SHELL_LETTERS
    if at < len(args) and args[at].text == "--":
        at += 1
    if not wants or at >= len(args):
        return None
    inner = args[at]
    if not clear or name not in CERTAIN_SHELLS:
        return Wrapped(
            texts=(inner,), sure=False, opaque=f"what {name} makes of this is not certain"
        )
    if name != "bash" and _BASH_ONLY.search(inner.text):
        return Wrapped(texts=(inner,), sure=False, opaque=f"{name} may not read this as bash does")
    return Wrapped(texts=(inner,))


_XARGS = (
    "-0 -r -t -a=read -d= -E= -I= -i? -L= -l? -n= -P= -s= -x -p -e? --null --no-run-if-empty "
    "--verbose --arg-file=read --delimiter= --max-args= --max-procs= --max-lines? --replace? "
    "--max-chars= --exit --interactive"
)


def _xargs(args: list[Arg]) -> Wrapped | None:
    """xargs adds words that nobody has seen: what it runs is seen, and is not all."""
    given = sort_words(args, flag_table(_XARGS), stop=True)
    if not given.operands:
        return None
    words = tuple(given.operands)
    starts = range(min(_GUESSES, len(words))) if given.strange else range(1)
    return Wrapped(
        tuple(words[i:] for i in starts),
        does="changes",
        sure=False,
        reason=f"xargs runs {spelled([words[0].text])[:60]} with words that it reads",
    )


def _git(args: list[Arg]) -> Wrapped | None:
    """Aliases given with `-c`, and the verbs that run a command on every step."""
    texts = [arg.text for arg in args]
    inner = [
        Arg(t.partition("=!")[2], a.known) for a, t in zip(args, texts, strict=True) if "=!" in t
    ]
    for at, text in enumerate(texts[:-1]):
        if text in ("-x", "--exec", "--tree-filter", "--index-filter", "foreach"):
            inner.append(args[at + 1])
        elif text == "run" and "bisect" in texts:
            inner.append(Arg(spelled(texts[at + 1 :])))
            break
    if not inner:
        return None
    return Wrapped(
        texts=tuple(inner),
        does="changes",
        sure=False,
        reason="git runs other programs",
        own=tuple(args),
    )


def _after(args: list[Arg], flags: tuple[str, ...], reason: str) -> Wrapped | None:
    at = next((i for i, arg in enumerate(args) if arg.text.split("=")[0] in flags), None)
    if at is None:
        return None
    return Wrapped((tuple(args[at + 1 :]),), does="changes", sure=False, reason=reason)
