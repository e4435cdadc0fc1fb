"""The protocols that adapters implement, and the values that pass through them.

`provider` (model APIs), `tool`, `store` (logs), `agent`, `session`, `hooks` (and undo), `machine`
(what judging a call needs to know of the machine) and `day` (the limits of a day). `codec` writes
records as lines of JSON and reads them again; `schema` and `pydantic_types` are about JSON Schema.
"""
