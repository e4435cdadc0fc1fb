"""The tools `shell`, `shell_output` and `shell_stop`: commands in bash, and jobs in the background.

`tool` has the tools, `state` what a session's shell remembers between commands, `jobs` the commands
in the background.
"""
