"""Settings, and the files that a person or a workspace brings: rules, hooks, servers, skills.

`settings` has the values and their names, `loader` merges defaults, file, environment and flags.
`policy`, `hooks`, `mcp`, `skills` and `diagnostics` parse one kind of file each (`yaml_file` reads
them), `trust` knows which folders the person trusts, and `folder` says what applies in a workspace.
`paths` has the places of the user's own files. A repository cannot choose a model, a key or an
address. Knows no provider and no engine.
"""
