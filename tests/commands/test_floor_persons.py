"""What only a person says to bridle is not the model's to type."""

import pytest

from bridle.commands.judge import judge
from bridle.workspace.ground import Ground
from bridle.workspace.paths import Workspace


@pytest.mark.parametrize(
    "line",
    [
        "bridle trust --yes",
        "bridle trust -y .",
        "env -u X bridle approvals answer abc yes",
        "sh -c 'bridle approvals answer abc yes'",
        "python -m bridle trust --yes",
        "python3 -I -m bridle trust -y",
        "ls && timeout 5 bridle approvals revoke --all",
    ],
)
def test_trust_and_answers_are_never_given_by_a_command(tmp_path, line):
    found = judge(line, str(tmp_path), Ground(Workspace(tmp_path)))
    assert "in the person's name" in found.floor


@pytest.mark.parametrize("line", ["bridle sessions list", "python -m pytest tests/trust"])
def test_other_words_to_bridle_are_only_asked_about(tmp_path, line):
    assert judge(line, str(tmp_path), Ground(Workspace(tmp_path))).floor == ""
