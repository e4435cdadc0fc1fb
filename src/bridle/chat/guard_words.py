"""What no reply holds outside a title: ids, the words of programmers, traces, data, addresses."""

import re
from functools import cache

_UUID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
_HEX = r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b"
_ULID = r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"
_SAID = r"\b(?:id|ids|identifier|uuid|guid|pk)\b\s*(?:is|was|of|number|no\.?)?\s*[:=#(]*\s*[\w-]*\d"
_PREFIXED = r"\b(?:user|call|conv|conversation|msg|toolu|req)[_-][0-9a-z]*\d[0-9a-z]*\b"
_HASH = r"#\d+"

LEAKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("id", re.compile("|".join((_UUID, _HEX, _SAID, _PREFIXED, _HASH)), re.IGNORECASE)),
    ("id", re.compile(_ULID)),
    (
        "trace",
        re.compile(
            r"Traceback|stack ?trace|\bFile \"[^\"]+\"|\bline \d+, in\b|\bat [\w.$]+\([\w.]+:\d+\)"
            r"|\b[A-Z]\w*(?:Error|Exception)\b|\bErrno\b|\bpanic:|\bsegfault\b"
        ),
    ),
    ("data", re.compile(r"```|\{\s*[\"'}]|\[\s*\{|\"\w+\"\s*:|<[/?]?[a-z][\w:-]*[\s/>]|<!", re.I)),
    (
        "address",
        re.compile(
            r"\b(?:https?|ftp|file|data|javascript|mailto|tel):\S|\]\(|\bwww\.\w"
            r"|(?<![\w/])//\w|\b[\w-]+\.[a-z]{2,}/\S",
            re.IGNORECASE,
        ),
    ),
    ("code", re.compile(r"\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+[A-Z]\w*Id\b|\b\w+\(\)|==|&&|=>")),
)

_THINGS = ("item", "number", r"no\.?", "record", "row", "entry")

_WORDS = (
    "json|xml|yaml|sql|sqlite|postgres(?:ql)?|mcp|uuids?|guid|regex|schemas?|api|apis|http|https"
    "|url|endpoint|backend|database|db|tool calls?|function calls?|tool results?|payload"
    "|parameters?|arguments?|null|undefined|boolean|exceptions?|stack|runtime|debug|stdout|stderr|tokens?"
    "|system prompt|user[ _-]?ids?|primary key|foreign key|status code|timeout"
    "|internal server error|invalid input|not_found|processing_error|traceback|query parameters?"
    "|llm|language model|session factory|rollback|idempotent|idempotency|row-level"
)
JARGON = re.compile(rf"\b(?:{_WORDS})\b", re.IGNORECASE)


@cache
def numbered(nouns: tuple[str, ...]) -> re.Pattern[str]:
    """A thing with a number after it, such as `item 7`, or what the profile calls its things."""
    things = "|".join((*map(re.escape, nouns), *_THINGS))
    return re.compile(rf"\b(?:{things})s?\s*(?:number|no\.?)?\s*[#:(]?\s*(\d+)\b", re.IGNORECASE)


@cache
def named(nouns: tuple[str, ...]) -> re.Pattern[str] | None:
    """A thing by its id, such as `NOUN_7f`, or the very words `NOUN id`."""
    if not nouns:
        return None
    things = "|".join(map(re.escape, nouns))
    wanted = rf"\b(?:{things})(?:[_-][0-9a-z]*\d[0-9a-z]*|[ _-]?ids?)\b"
    return re.compile(wanted, re.IGNORECASE)
