"""The shape of a command line, as far as it was understood. Values, no more."""

from typing import Literal

from msgspec import Struct

RedirectKind = Literal["read", "write", "append", "text", "copy"]


class Word(Struct, frozen=True, gc=False, omit_defaults=True):
    """One word with its quotes and escapes taken off. `globs`: it has unquoted `*`, `?` or `[`.

    In a word that globs, no quoted character would glob: such a word is not `known`. `**` in it is
    what `*` is, and where nothing fits, the word stays as it is.
    `tilde`: it begins with an unquoted `~` that stands for a home folder. Not `known`: it has an
    expansion in it, and `text` is the word as it is spelled, quotes and all (`"$HOME"/*`), so that
    what is forbidden is seen in it.
    """

    text: str
    globs: bool = False
    tilde: bool = False
    known: bool = True


class Redirect(Struct, frozen=True, gc=False, omit_defaults=True):
    """`< file` reads, `> file` writes, `>> file` appends, `<<` is text, `2>&1` copies a handle.

    `<>`, `>|`, `&>` and `>& file` write. The target of a text is the text itself.
    """

    kind: RedirectKind
    target: Word = Word("")
    handle: int = 1


class Simple(Struct, frozen=True, gc=False, omit_defaults=True):
    """One simple command: assignments before it, its words, its redirections.

    `opaque` says what in it cannot be known before it runs (an expansion, say); the words are then
    as far as they are known. `follows` is how it hangs together with the one before.
    `scope` has the numbers of the subshells it runs in, the outermost first (none: the shell
    itself); a `cd` ends with its subshell. Each part of a pipe has one of its own, and so has a
    list that runs in the background. `piped`: it is, by itself, a part of a pipe. What a group or a
    subshell redirects is a command without words, before the first command of the group.
    """

    words: tuple[Word, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    follows: Literal["", ";", "&&", "||", "|", "&"] = ""
    opaque: str = ""
    scope: tuple[int, ...] = ()
    piped: bool = False

    @property
    def argv(self) -> tuple[str, ...]:
        """The words alone."""
        return tuple([word.text for word in self.words])


class Script(Struct, frozen=True, gc=False, omit_defaults=True):
    """A whole command line: its simple commands in the order in which they stand.

    `opaque` says what was not understood of it as a whole; the commands found are still there, so
    that what is forbidden is seen. `refused`: it is over a limit, and was not parsed at all.
    """

    commands: tuple[Simple, ...] = ()
    opaque: str = ""
    refused: str = ""
