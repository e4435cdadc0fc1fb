"""What a command line would do, found out without running it.

`analysis.analyze` is the entry. `lexer` splits a line into tokens, and `parser` makes commands of
them (`syntax`) if tree-sitter reads the line in the same way. `wrappers` finds the commands inside
of commands, and `variables` says what expansions may stand for. `programs` is the table of known
programs. With it, `argv` parses a command's words, and `effects` and `checks` say what it does to
which `paths`. `floor` has what no one may run. `findings` collects all of this.

Nothing runs and nothing is opened: what has to be known of the machine is asked of a `Machine`.
"""
