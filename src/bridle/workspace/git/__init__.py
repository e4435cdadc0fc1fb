"""Git repositories, read without git: their configuration, objects, hooks and worktrees."""
