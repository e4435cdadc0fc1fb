"""A toolbox of one's own, over a table of one's own: what it accepts, and that it holds."""

import asyncio
from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct
from sqlmodel import Field, select

from bridle.chat import Binding, ChatApp, Profile
from bridle.chat.db import Database, OwnedRow
from bridle.chat.tools.mcp_server import ToolServer
from bridle.chat.tools.toolbox import Call, Toolbox, ToolFailed
from bridle.errors import ConfigError


class Expense(OwnedRow, table=True):
    """What somebody spent."""

    __tablename__ = "test_bill"

    id: int | None = Field(default=None, primary_key=True)
    what: str
    amount: float


box = Toolbox("expenses", "One person's expenses.")


@box.tool
def add_expense(
    call: Call,
    what: str,
    amount: Annotated[float, Meta(gt=0)],
    kind: Literal["food", "other"] = "other",
) -> dict:
    """Note an expense.

    Args:
        what: On what it was spent.
    """
    row = Expense(what=what, amount=amount)
    call.session.add(row)
    call.session.flush()
    return {"id": row.id, "what": what, "amount": amount, "kind": kind}


@box.tool(reads=True)
def total(call: Call) -> float:
    """How much was spent."""
    return sum(one.amount for one in call.session.exec(select(Expense)))


class Change(Struct):
    expense_id: int
    what: str | None = None
    amount: float | None = None


@box.tool(name="change_expense")
def change(call: Call, change: Change) -> dict:
    """Change an expense."""
    row = call.session.get(Expense, change.expense_id)
    if row is None:
        raise ToolFailed("not_found", "There is no such expense.")
    row.what = change.what or row.what
    return {"what": row.what}


@pytest.fixture
def expenses(database):
    database.install(Expense)
    return ToolServer(box, database.session_factory)


def calls(server, *wanted):
    async def work():
        found = [await server.call(name, given, Binding(user)) for user, name, given in wanted]
        await server.close()
        return found

    return asyncio.run(work())


def test_T3_a_company_s_own_table_is_as_closed_as_ours(expenses):
    added, mine, theirs, changed, foreign, forged = calls(
        expenses,
        ("ana", "add_expense", {"what": "Lunch", "amount": "12.5", "kind": "food"}),
        ("ana", "total", {}),
        ("bob", "total", {}),
        ("ana", "change_expense", {"expense_id": 1, "what": "Dinner"}),
        ("bob", "change_expense", {"expense_id": 1, "what": "Mine"}),
        ("bob", "add_expense", {"what": "x", "amount": 1, "user_id": "ana"}),
    )
    assert added["data"] == {"id": 1, "what": "Lunch", "amount": 12.5, "kind": "food"}
    assert (mine["data"], theirs["data"]) == (12.5, 0)
    assert changed["data"] == {"what": "Dinner"}
    assert foreign["error"]["code"] == "not_found"
    assert forged["error"]["code"] == "invalid_input"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("add_expense", {"what": "x"}),
        ("add_expense", {"what": "x", "amount": -1}),
        ("add_expense", {"what": "x", "amount": 1, "kind": "drink"}),
        ("add_expense", {"what": "x", "amount": 1, "more": 1}),
        ("change_expense", {}),
        ("change_expense", {"expense_id": "one"}),
        ("change_expense", {"expense_id": 1, "colour": "red"}),
    ],
)
def test_arguments_that_do_not_fit_are_said_so(expenses, name, given):
    (found,) = calls(expenses, ("ana", name, given))
    assert found["error"]["code"] == "invalid_input"
    assert "do not fit" in found["error"]["message"]


def test_what_a_model_is_told():
    infos = {one.name: one for one in box.infos()}
    assert infos["add_expense"].description == "Note an expense."
    assert infos["total"].reads
    assert infos["change_expense"].parameters["required"] == ["expense_id"]
    assert set(infos["change_expense"].parameters["properties"]) == {"expense_id", "what", "amount"}
    assert infos["add_expense"].parameters["properties"]["what"] == {
        "description": "On what it was spent.",
        "type": "string",
    }


class Sneaky(Struct):
    title: str
    owner_id: str


async def later(call: Call) -> None:
    """Later."""


def nothing() -> None:
    """Nothing."""


def whose(call: Call, given: Sneaky) -> None:
    """Whose."""


def bare(call: Call, thing) -> None:
    """Bare."""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (later, "async"),
        (nothing, "no parameter for the call"),
        (whose, "owner_id"),
        (bare, "no annotation"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_where_it_stands(function, said):
    with pytest.raises(ConfigError, match=said):
        Toolbox("x").tool(function)


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two tools"):
        box.tool(name="total")(lambda call: None)


def test_a_chat_of_one_s_own_is_put_together_in_one_line(tmp_path):
    from bridle.providers.scripted import Scripted

    call = {"name": "add_expense", "arguments": {"what": "Lunch", "amount": 12}}
    model = Scripted([{"text": "", "calls": [call]}, "Noted: lunch for 12."])
    profile = Profile("expenses", "You keep a person's expenses.")
    app = ChatApp(profile, box, str(tmp_path / "e.db"), tables=[Expense], provider=model)

    async def work():
        async with app:
            said = await app.service.reply("ana", "I spent 12 on lunch")
            return said.response, await app.tools.call("total", {}, Binding("ana"))

    response, spent = asyncio.run(work())
    assert response == "Noted: lunch for 12."
    assert spent["data"] == 12


def test_without_anything_it_is_the_task_assistant(sqlite_url):
    database = Database(sqlite_url)

    async def work():
        async with ChatApp(database=database) as app:
            return (await app.service.reply("ana", "Add task buy milk")).response

    assert "buy milk" in asyncio.run(work()).casefold()
    database.close()
