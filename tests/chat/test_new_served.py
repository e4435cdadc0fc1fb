"""A new project, served: two people talk to it over HTTP, and know nothing of one another."""

import sys

import pytest
from click.testing import CliRunner
from new_rig import Served, environ

from bridle.cli.main import commands


@pytest.mark.timeout(120)  # it starts a server
def test_T6_a_new_project_is_served_and_answers_over_http(tmp_path):
    """T2, T3: its own tools over its own table, for the two users of the demo."""
    place = tmp_path / "my-notes"
    assert CliRunner().invoke(commands, ["new", "chat-app", str(place)]).exit_code == 0
    line = f"exec {sys.executable} -m bridle chat-server --app my_notes.app:app --demo --port 0"
    served = Served(line, place, {**environ(), "BRIDLE_STATE": str(tmp_path / "state")})
    try:
        code, noted = served.say("ana", "note that the key is under the mat")
        assert (code, noted["response"]) == (200, "Noted: 'the key is under the mat'.")
        there = noted["conversation_id"]
        asked = served.say("ana", "delete the key", there)[1]["response"]
        assert asked == (
            "Do you really want to delete 'the key is under the mat'? "
            "Reply 'yes delete' to confirm."
        )
        assert served.say("ben", "yes delete")[1]["response"].startswith("There's nothing waiting")
        assert served.say("ben", "my notes")[1]["response"].startswith("You have no notes yet.")
        assert served.say("ana", "notes", token=served.tokens["ben"])[0] == 403
        gone = served.say("ana", "yes delete", there)[1]["response"]
        assert gone == "The note 'the key is under the mat' is gone."
    finally:
        assert served.stop() == 0
