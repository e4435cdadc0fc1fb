"""bridle as an MCP server: another agent hands it a task, looks at sessions, sees what is asked.

The same gate, log and limits as everywhere. Whoever calls can narrow what a task may do and never
widen it: rules, workspace, the widest mode and the limits are those that the server was started
with. `tasks` runs them and `views` shows what there is; both know nothing of MCP. `offer` is a tool
as it is offered, `wire` brings offers to the official SDK, `pipes` and `web` are the two ways in.
"""
