"""The sentences that the assistant understands without a model, each as a pattern."""

from bridle.chat import Ask, RuleMatch, Rules

rules = Rules(
    "expenses",
    fallback="Tell me what you spent, ask for the list, or drop something from it.",
    languages=("en",),
)


@rules.when(r"(?:i )?(?:spent|paid) \W?(?P<amount>\d+(?:\.\d\d?)?)\W? (?:on|for) (?P<what>.+)")
def spent(match: RuleMatch) -> Ask:
    return Ask("add_expense", {"what": match["what"], "amount": float(match["amount"])})


@rules.when(r"(?:list|show|what are)? ?(?:me )?(?:all )?(?:my |the )?expenses")
@rules.when(r"(?:what|how much) did i spend")
def show(match: RuleMatch) -> Ask:
    return Ask("list_expenses")


@rules.when(r"(?:drop|delete|remove) (?:my |the )?(?P<what>.+)")
def drop(match: RuleMatch) -> Ask | str:
    if match.data is None:
        return Ask("find_expenses", {"what": match["what"]})
    expenses = match.data["expenses"]
    if len(expenses) != 1:
        return "Which one?"
    return Ask("drop_expense", {"expense_id": expenses[0]["id"]})
