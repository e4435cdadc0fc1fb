"""What a command line would do, found out without running it.

`judge` puts it together. A line is cut into tokens (`lexer`) and read twice (`grammar`, and
`syntax_tree` by tree-sitter); `parse` accepts only what both read alike. `unwrap` finds commands in
commands, `expansions`, `variables` and `working_directory` follow what the shell would put in, and
`known`, a table of programs, with `argv`, `checks` and `effects` says what each one does to which
`paths`. `floor` has what no one may run, `searches` what reads whole folders.

Pure. Nothing runs and nothing is opened; questions about the machine go to a `Machine`.
"""
