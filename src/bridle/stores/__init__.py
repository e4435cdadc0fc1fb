"""Sessions as logs on disk: one append-only file of numbered records for each session.

Write: `jsonl` (the store and an open log), `writer` (the thread), `log_file`, `disk`.
Read: `reader` (follow, search backwards, load), `log_format` (a line), `hash_chain`, `last_run`.
Over all sessions: `session_index`, `search`, `pending` (open approvals), `day_budget`.
Between processes: `locks` (who owns a session), `inbox`, `active_sessions`.
Whole logs: `verify`, `transfer` (fork, export, import, delete), `markdown`. Tests: `memory`.
"""
