"""The assistant's tools. A model reads the docstrings; it cannot choose the user."""

from typing import Any

from bridle.chat import Call, Toolbox, ToolFailed, matches
from sqlmodel import col, select

from expenses.tables import Expense

toolbox = Toolbox("expenses")


@toolbox.tool
def add_expense(call: Call, what: str, amount: float) -> dict[str, Any]:
    """Note an expense.

    Args:
        what: what the money was spent on, in the person's own words
        amount: the amount, such as 12.50
    """
    if not what.strip() or len(what) > 200:
        raise ToolFailed("invalid_input", "What was it for, in a few words?", field="what")
    if not 0 < amount < 1_000_000:
        raise ToolFailed("invalid_input", "How much was it?", field="amount")
    row = Expense(what=what.strip(), cents=round(amount * 100))
    call.session.add(row)
    call.session.flush()
    return to_dict(row)


@toolbox.tool(reads=True)
def list_expenses(call: Call) -> dict[str, Any]:
    """List all expenses of the person, oldest first, and their total."""
    expenses = rows(call)
    total = money(sum(row.cents for row in expenses))
    return {"expenses": [to_dict(row) for row in expenses], "total": total}


@toolbox.tool(reads=True)
def find_expenses(call: Call, what: str) -> dict[str, Any]:
    """Find the expenses that match a description. Use it before dropping one.

    Args:
        what: the person's words for the expense
    """
    expenses = rows(call)
    found = matches(what, [row.what for row in expenses], nouns=("expense", "expenses"))
    return {"looked_for": what, "expenses": [to_dict(expenses[index]) for index in found]}


@toolbox.tool(deletes=True)
def drop_expense(call: Call, expense_id: int) -> dict[str, Any]:
    """Drop an expense permanently.

    Args:
        expense_id: the id of the expense, from the list
    """
    row = call.session.get(Expense, expense_id)
    if row is None:
        raise ToolFailed("not_found", "There is no such expense.")
    call.session.delete(row)
    return to_dict(row)


def rows(call: Call) -> list[Expense]:
    return list(call.session.exec(select(Expense).order_by(col(Expense.id))))


def to_dict(row: Expense) -> dict[str, Any]:
    return {"id": row.id, "what": row.what, "amount": money(row.cents)}


def money(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02}"
