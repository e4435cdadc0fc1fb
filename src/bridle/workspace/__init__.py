"""The machine under the tools: the folder they work in, and what keeps calls inside it.

Files of the workspace are opened by directory handles, so that no link leads out. Here also: which
paths need care and where a path leads (for judging calls), .gitignore and globs, git without
running it, the sandbox for commands (bubblewrap, Landlock, seccomp), files that commands may not
change, `process` (programs that run beside us) and `undo`.
"""
