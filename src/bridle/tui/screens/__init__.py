"""The screens: the conversation, the list of sessions, approvals of all sessions, first run."""
