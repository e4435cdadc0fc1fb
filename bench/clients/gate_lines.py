"""Command lines for the measures of the gate: hostile ones by dice, everyday ones from a list."""

import random
from collections.abc import Iterator

PIECES = (
    *("a", "rm -rf /", "cat", "ls -la", "git status", "x=1", "é", "0", "-", "~", "*", "[a-z]", "?"),
    *(" ", " ", " ", " ", "\n", "\t", "\\\n", "; ", " && ", " || ", " | ", " & ", " > f", " < f"),
    *("'", '"', "\\", "$", "`", "$(", ")", "(", "{", "}", "${", "$((", "))", "<(", ">(", "<<E\n"),
    *("$x", "$'\\x41'", "{a,b}", "[[ ", " ]]", "if ", "; then ", "; fi", "for i in a; do ", "done"),
    *("\0", "\r", "\x1b[2J", "\u202e", "\u00a0", "\ud800", "\x85", "#", "!", "%", "=", "sudo "),
)
WRAPPERS = ("sudo {}", "env A=1 {}", "nice -n 5 {}", "timeout 5 {}", "bash -c '{}'", "xargs {}")
DEEP = (("(", ")"), ("$(", ")"), ("{ ", "; }"), ("`", "`"), ("if a; then ", "; fi"), ("<(", ")"))
LONGEST = 2_000_000


def hostile(count: int) -> Iterator[tuple[str, bool]]:
    """So many of them, the same in every run: noise, wrappers, many commands, deep ones, 2 MB.

    With each: is it certain that it changes something, so that it must not run unasked?
    """
    dice = random.Random(20)
    makers = (_noise, _noise, _noise, _long_noise, _wrapped, _many, _deep, _one_piece)
    for number in range(count):
        make = _huge if number % 100 == 0 else makers[number % len(makers)]
        yield make(dice), make in (_many, _deep, _huge)


def _noise(dice: random.Random) -> str:
    return "".join(dice.choices(PIECES, k=dice.randint(1, 60)))


def _long_noise(dice: random.Random) -> str:
    return "".join(dice.choices(PIECES, k=dice.randint(60, 4000)))


def _wrapped(dice: random.Random) -> str:
    line = _noise(dice)
    for _ in range(dice.randint(1, 8)):
        line = dice.choice(WRAPPERS).replace("{}", line)
    return line


def _many(dice: random.Random) -> str:
    join = dice.choice((";", "\n", " && ", " | ", " & "))
    return join.join(f"echo {dice.random()} > f{number}" for number in range(dice.randint(2, 60)))


def _deep(dice: random.Random) -> str:
    opens, closes = dice.choice(DEEP)
    depth = dice.randint(1, 50)
    return f"echo {dice.random()} {opens * depth}rm -rf x{closes * depth}"


def _one_piece(dice: random.Random) -> str:
    return f"{dice.choice(PIECES)} {dice.random()} " + dice.choice(PIECES) * dice.randint(1, 5000)


def _huge(dice: random.Random) -> str:
    piece = "".join(dice.choices(PIECES, k=50))
    return (piece * (LONGEST // len(piece)))[: dice.randint(20_000, LONGEST)]


EVERYDAY = (
    "ls -la src{n}",
    "cat README.md | head -{n}",
    "git status --short -- src{n}",
    "git log --oneline -n {n}",
    "git diff HEAD~{n} -- src tests",
    "grep -rn 'needle{n}' src --include='*.py'",
    'rg "def test_{n}" tests -l | sort | uniq -c',
    "find . -name '*{n}.py' -not -path './.git/*' | wc -l",
    "cd src && ls && pwd && cat file{n}.txt",
    "python -m pytest tests/test_{n}.py -x -q 2>&1 | tail -20",
    "make test-{n}",
    "npm run build -- --only {n}",
    "sed -n '{n},40p' src/main.py",
    "mkdir -p build/{n} && cp a.txt build/{n}/",
    'git add -A && git commit -m "Change number {n}"',
    "curl -s https://example.com/{n} | jq .name",
    "for f in *.py; do echo $f {n}; done",
    "echo $(git rev-parse HEAD) {n}",
    "rm -rf build/{n} dist",
    "docker compose up -d service{n}",
)


def everyday(passes: int) -> list[str]:
    """All of them, so many times, no two alike."""
    return [
        line.replace("{n}", str(number)) for number in range(1, passes + 1) for line in EVERYDAY
    ]
