"""What the assistant understands without a model: a few sentences, each as a pattern."""

from bridle.chat import Ask, Rules, Said

rules = Rules(
    "expenses",
    otherwise="Tell me what you spent, ask for the list, or drop something from it.",
    languages=("en",),
)


@rules.when(r"(?:i )?(?:spent|paid) \W?(?P<amount>\d+(?:\.\d\d?)?)\W? (?:on|for) (?P<what>.+)")
def spent(said: Said) -> Ask:
    return Ask("add_expense", {"what": said["what"], "amount": float(said["amount"])})


@rules.when(r"(?:list|show|what are)? ?(?:me )?(?:all )?(?:my |the )?expenses")
@rules.when(r"(?:what|how much) did i spend")
def show(said: Said) -> Ask:
    return Ask("list_expenses")


@rules.when(r"(?:drop|delete|remove) (?:my |the )?(?P<what>.+)")
def drop(said: Said) -> Ask | str:
    if said.data is None:
        return Ask("find_expenses", {"what": said["what"]})
    found = said.data["expenses"]
    return Ask("drop_expense", {"expense_id": found[0]["id"]}) if len(found) == 1 else "Which one?"
