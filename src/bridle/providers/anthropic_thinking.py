"""How long Claude is asked to think: one word, `effort`, for models that take it differently.

Newer models decide for themselves and take the word (adaptive), older ones take a number of
tokens (budget), the oldest do not think (none). A model that nobody listed counts as new.
"""

from typing import Any

from bridle.promises.provider import ProviderInfo, RequestConfig, Thinks, reply_limit

_LEAST = 1024  # the smallest budget that the API takes
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576}
_LARGEST = 32768


def thinking_fields(config: RequestConfig, thinks: Thinks | None, limit: int) -> dict[str, Any]:
    """The `thinking` of a request, and `effort` where it is a word of its own."""
    if not config.effort or thinks == "none":
        return {}
    if config.effort == "none":
        return {"thinking": {"type": "disabled"}}
    if thinks != "budget":
        shown = {"type": "adaptive", "display": "summarized"}
        return {"thinking": shown, "effort": config.effort}
    # The budget is part of the limit: a quarter stays for the words, where that much is left.
    budget = max(_LEAST, min(_wanted(config.effort), limit * 3 // 4))
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget < limit else {}


def why_not_thinking(config: RequestConfig, info: ProviderInfo) -> str:
    """Why the effort that was asked for cannot be; empty where it can, or none was asked for."""
    if config.effort in ("", "none"):
        return ""
    limit = reply_limit(config, info)
    if thinking_fields(config, info.thinks, limit):
        return ""
    if info.thinks == "none":
        return f"{info.model} does not think before it answers"
    return f"{info.model} needs max_tokens over {_LEAST} to think"


def _wanted(effort: str) -> int:
    return 0 if effort in ("", "none") else _BUDGETS.get(effort, _LARGEST)
