"""Child processes: how they are started, and ended so that nothing of them is left.

`supervised_process` is a program that bridle talks to over its pipes: an MCP server, an ACP agent,
Claude Code. `command` runs one command to its end and takes its output: the shell tool, a search, a
hook. Both use `process_tree`, which finds the processes that a program has started. `command` also
decides what a program may know of our environment. The supervisor itself is the script
`workspace/supervise.py`.
"""
