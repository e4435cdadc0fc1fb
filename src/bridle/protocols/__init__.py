"""The protocols that adapters implement, and the values that pass through them.

`provider` (model APIs), `tool`, `store` (logs, and the limits of a day), `agent`, `session`,
`hooks` (and undo) and `machine` (what judging a call needs to know of the machine). `codec` writes
records as lines of JSON and reads them again; `json_schema` is about JSON Schema.
"""
