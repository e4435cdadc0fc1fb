"""What is promised of sessions that last: how fast large logs and many sessions are, and how calm.

Ours alone: nothing here is compared with a peer. Each measure is a process of its own.
"""
