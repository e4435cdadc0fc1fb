"""A profile of one's own: other tools over another table, other sentences, the same runner."""

import pytest
from runner_rig import call, scripted

from bridle.chat import AgentContext, AgentRunner, Database, Profile
from bridle.chat.i18n import standard_replies
from bridle.chat.profile import Confirm
from bridle.chat.tools.identity import Binding
from bridle.chat.tools.source import ToolInfo, failure, success
from rig import run

NUMBER = {"type": "object", "properties": {"expense_id": {"type": "integer"}}}


class Expenses:
    """A source of tools that is no MCP server: the runner knows the promise only."""

    def __init__(self):
        self.rows = {7: {"id": 7, "name": "Lunch", "amount": 12}}

    async def list(self):
        return (
            ToolInfo("list_expenses", "All of them.", {"type": "object"}, reads=True),
            ToolInfo("drop_expense", "Take one away.", NUMBER, deletes=True),
        )

    async def call(self, name, arguments, binding):
        assert isinstance(binding, Binding)
        if name == "list_expenses":
            return success({"expenses": list(self.rows.values())})
        row = self.rows.pop(arguments["expense_id"], None)
        return success(row) if row else failure("not_found", "There is no such expense.")

    async def close(self):
        pass


def told(telling):
    done = [one for one in telling.records if one.tool_name == "drop_expense" and one.ok]
    return telling.say("dropped", name=done[-1].data["name"]) if done else ""


PROFILE = Profile(
    "expenses",
    "You help one person with their own expenses.",
    replies=standard_replies().override(
        {
            "en": {
                "dropped": "'{name}' is no longer among your expenses.",
                "ask_drop": "Drop '{title}'? Reply '{phrase}' to confirm.",
                "phrase_drop": "yes drop",
                "verb_drop": "drop",
            }
        }
    ),
    reply_text=told,
    confirm={
        "drop_expense": Confirm(
            "drop", "expense_id", lookup="list_expenses", question="ask_drop", phrase="phrase_drop"
        )
    },
    jargon=("ledger",),
)


@pytest.fixture
def database(sqlite_url):
    found = Database(sqlite_url)
    yield found
    found.close()


def test_T2_the_runner_is_general(database):
    """Its own question, its own phrase, its own sentences; confirmed by the same code."""

    async def story():
        model = scripted(call("drop_expense", expense_id=7), "Dropped expense 7.", "Hi!")
        tools = Expenses()
        runner = AgentRunner(database.session_factory, tools, profile=PROFILE, provider=model)
        context = AgentContext("ana", "c1", language="en")
        asked = await runner.run(context, "drop lunch")
        assert asked.response == "Drop 'Lunch'? Reply 'yes drop' to confirm."
        assert tools.rows
        done = await runner.run(context, "yes drop")
        assert done.response == "'Lunch' is no longer among your expenses."
        assert not tools.rows
        assert (await runner.run(context, "hello")).response == "Hi!"
        await runner.close()

    run(story())


@pytest.mark.parametrize("said", ["The ledger is fine.", "Expense id 7 is Lunch.", "KeyError: 7"])
def test_T5_a_profile_without_sentences_for_it_still_says_nothing_technical(database, said):
    async def story():
        model = scripted(call("list_expenses"), said)
        runner = AgentRunner(database.session_factory, Expenses(), profile=PROFILE, provider=model)
        result = await runner.run(AgentContext("ana", "c1", language="en"), "what did I spend?")
        assert result.response == "Sorry, I didn't quite get that. What would you like to do?"
        await runner.close()

    run(story())


def test_T5_in_a_language_of_which_there_is_no_data_the_model_speaks(database):
    """French: what it says is checked for leaks, and otherwise left in the user's language."""

    async def story():
        model = scripted(call("list_expenses"), "Vous avez un repas : 'Lunch'.")
        runner = AgentRunner(database.session_factory, Expenses(), profile=PROFILE, provider=model)
        result = await runner.run(AgentContext("ana", "c1", language="fr"), "mes dépenses ?")
        assert result.response == "Vous avez un repas : 'Lunch'."
        await runner.close()

    run(story())
