"""What a server has to choose from: every model once, by the name that sessions say it with."""

import asyncio

from bridle.cli.server_setup import ChoiceList
from bridle.config.settings import Settings
from bridle.providers.offline import Offline
from bridle.service.choices import AllowedChoices


def test_the_offline_responder_stands_in_the_list_once_and_can_be_chosen_by_that_name():
    offer = AllowedChoices(free=False, vendors=frozenset({"offline"}), model="offline")
    found = asyncio.run(ChoiceList(Settings(model="offline"), offer).models())
    (one,) = found.choices
    assert (one.name, one.default) == (Offline().info.label, True)
    offer.check_model("", one.name)
