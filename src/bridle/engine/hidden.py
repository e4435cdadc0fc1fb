"""Which files a search leaves out, because a rule keeps them from being read. Pure."""

from collections.abc import Callable
from functools import lru_cache

from bridle.policy import Act, Rule

_NAMES = ("grep", "read")


def hidden_by(rules: tuple[Rule, ...]) -> Callable[[str], bool] | None:
    """Says of a path from the root whether it is kept; None where no rule keeps any."""
    keeping = tuple(one for one in rules if one.verdict != "allow" and one.pattern != "*")
    return _predicate(keeping) if keeping else None


@lru_cache(maxsize=64)
def _predicate(rules: tuple[Rule, ...]) -> Callable[[str], bool]:
    def hides(path: str) -> bool:
        act = Act(_NAMES, path, "reads", is_path=True)
        return any(rule.speaks_of(act) for rule in rules)

    return hides
