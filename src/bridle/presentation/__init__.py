"""What bridle tells a person, the same in every interface. Imports neither engine nor interfaces.

- `calls`: what a call is about, and a summary of its result. `amounts`: money, tokens, durations.
- `notices`: what happened to a session, in one line each; how a turn ended.
- `modes`: the permission modes and what they mean. `approvals`: approval requests.
- `blocks` and `fold`: records as the blocks of a conversation.
- `commands`: the table of slash commands.
"""
