"""What the scripted models of the journeys say, and the small project that they work on. Data."""

BASKET = '''\
"""A shopping basket."""


def total(prices, discount=0):
    """What the basket costs; `discount` is in percent."""
    return sum(prices) * (100 - discount) / 10
'''
FILES = {"basket.py": BASKET, "README.md": "# shop\n\nPrices, summed.\n"}
PROMPT = "The total is ten times too high. Find out why and mend it."
LAST = "Mended: a percentage is divided by 100 now."


def say(text="", *calls, **more):
    """A reply, with the calls it asks for: (name, arguments) each."""
    asked = [{"name": name, "arguments": arguments} for name, arguments in calls]
    use = {"input_tokens": 900, "output_tokens": 60}
    return {"text": text, "calls": asked, "usage": use, **more}


EDIT = ("edit", {"path": "basket.py", "old": "/ 10\n", "new": "/ 100\n"})
READ = say("", ("read", {"path": "basket.py"}))  # nothing is changed that was not read
MEND = [
    say(
        "I look at it first.",
        ("read", {"path": "basket.py"}),
        thinking="Ten times too high.\nA factor.",
    ),
    say("The cause is in `total`.", EDIT),
    say(LAST),
]

EXPLAINED = """\
The total is **ten times** too high, and here is why:

```python
def total(prices, discount=0):
    return sum(prices) * (100 - discount) / 10  # a percentage has a hundred parts
```

| discount | is | should be |
|---------:|---:|----------:|
| 0 | 10.00 | 1.00 |
| 25 | 7.50 | 0.75 |

1. `discount` is in percent, see [the docs](https://docs.example.org/percent)
2. so it is divided by 100, *not* by 10
"""
TODOS = {
    "todos": [
        {"content": "Find out why the total is wrong", "status": "completed"},
        {"content": "Mend it", "status": "in_progress"},
        {"content": "Run the tests", "status": "pending"},
    ]
}
RICH = say(
    EXPLAINED,
    ("read", {"path": "basket.py"}),
    ("todo_write", TODOS),
    thinking="Ten times too high.\nSo somewhere a factor of ten is lost.\nI read the file first.",
)
PLAN = say(
    "Here is what I would do.",
    (
        "exit_plan_mode",
        {"plan": "## Plan\n\n1. Read `basket.py`\n2. Mend *one* line\n3. Run the tests"},
    ),
)
QUESTION = say(
    "",
    (
        "ask_user",
        {
            "question": "Which database shall it be?",
            "options": ["PostgreSQL, as in production", "SQLite, simpler"],
        },
    ),
)
