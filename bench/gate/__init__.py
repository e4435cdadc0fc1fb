"""The gate: how long it takes to judge a command, to search, and to keep what stands there."""
