"""The parts of a parsed command line, as far as it was understood. Values without behaviour."""

from typing import Literal

from msgspec import Struct

RedirectKind = Literal["read", "write", "append", "text", "copy"]


class Word(Struct, frozen=True, gc=False, omit_defaults=True):
    """One word without its quotes and escapes.

    `globs`: it has an unquoted `*`, `?` or `[`. Such a word has no quoted character that would be
    special in a pattern; if it had, it would not be `known`. `**` means the same as `*`, and if
    nothing matches, the word stays as it is. `tilde`: it begins with an unquoted `~` that stands
    for a home folder. If it is not `known`, it has an expansion in it, and `text` is its source
    text with the quotes (`"$HOME"/*`), in which what is forbidden can still be seen.
    """

    text: str
    globs: bool = False
    tilde: bool = False
    known: bool = True


class Redirect(Struct, frozen=True, gc=False, omit_defaults=True):
    """`< file` reads, `> file` writes, `>> file` appends, `<<` is text, `2>&1` copies a handle.

    `<>`, `>|`, `&>` and `>& file` write. The target of a here-document is its text.
    """

    kind: RedirectKind
    target: Word = Word("")
    handle: int = 1


class SimpleCommand(Struct, frozen=True, gc=False, omit_defaults=True):
    """One simple command: the assignments before it, its words and its redirections.

    `opaque` says what in it cannot be known before it runs, such as an expansion; its words are
    then those that are known. `follows` is the operator before it. `scope` has the numbers of the
    subshells that it runs in, the outermost first, and is empty for the shell itself; the effect of
    a `cd` ends with its subshell. Each part of a pipe has a subshell of its own, and so has a list
    in the background. `piped`: it is a whole part of a pipe. The redirections of a group or a
    subshell are a command without words, before the first command of the group.
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
        """The texts of the words."""
        return tuple([word.text for word in self.words])


class Script(Struct, frozen=True, gc=False, omit_defaults=True):
    """A whole command line: its simple commands in order.

    `opaque` says what was not understood of it as a whole; the commands that were found are still
    there, so that what is forbidden can be seen. `over_limit` says which limit it exceeds; then it
    was not parsed at all.
    """

    commands: tuple[SimpleCommand, ...] = ()
    opaque: str = ""
    over_limit: str = ""
