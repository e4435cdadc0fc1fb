"""Sessions as logs on disk: one append-only file of numbered records for each session.

Write: `jsonl` (the store and an open log), `log_file` (its file and the writer's thread), `disk`.
Read: `reader` (follow, load), `log_format` (a line; search backwards), `hash_chain`.
Over all sessions: `session_index`, `search`, `pending` (open approvals), `day_budget`.
Between processes: `locks` (who owns a session), `inbox`.
Whole logs: `verify`, `transfer` (fork, export, import, delete), `markdown`. Tests: `memory`.
"""
