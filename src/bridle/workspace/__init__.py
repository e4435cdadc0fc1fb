"""The machine under the tools: the folder they work in, and what keeps calls inside it.

- `workspace`: the files of a workspace, opened by directory handles (`safe_open`), so that no link
  leads out. `fs` has the file operations that must be safe everywhere, `ignore` .gitignore rules.
- `machine`: what judging a call needs to know: where a path leads, and which paths are protected by
  their names (`sensitive_paths`). `programs` finds programs, `git` reads repositories without git.
- `sandbox`: how commands are confined, by `bubblewrap` or by Landlock and `seccomp`. `supervise` is
  the script that runs above a command.
- `protected_files`, which no command may change, and `permission_files`, which need a permission.
- `process`: child processes. `undo`: what turns change, and how it is undone.
- `text` and `change`: text that is safe to show. `regex_safety`: bounded searches.
"""
