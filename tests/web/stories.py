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
MEND = [
    say(
        "I look at it first.",
        ("read", {"path": "basket.py"}),
        thinking="Ten times too high.\nA factor.",
    ),
    say("The cause is in `total`.", EDIT),
    say(LAST),
]
