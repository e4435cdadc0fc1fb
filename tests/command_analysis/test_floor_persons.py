"""What only a person says to bridle is not the model's to type."""

import pytest
from deciding import decided, understood

from bridle.command_analysis.analysis import analyze
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace


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
    found = analyze(line, str(tmp_path), LocalMachine(Workspace(tmp_path)))
    assert "in the person's name" in found.floor


@pytest.mark.parametrize("line", ["bridle sessions list", "python -m pytest tests/trust"])
def test_other_words_to_bridle_are_only_asked_about(tmp_path, line):
    assert analyze(line, str(tmp_path), LocalMachine(Workspace(tmp_path))).floor == ""


@pytest.mark.parametrize(
    "line",
    [
        "sudo ls",
        "sudo -u postgres psql",
        "su -c id",
        "doas apt update",
        "pkexec id",
        "env sudo ls",
        "sh -c 'sudo ls'",
        "runuser -u nobody id",
        "setcap cap_net_raw+ep ./ping",
        "chmod u+s tool",
        "chmod 4755 tool",
        "chmod -v 02755 tool",
        "chmod g+xs,o-w tool",
        "chmod a=rxs tool",
        "chmod $FLAGS 6755 tool",
        "find . -name tool -exec chmod 4755 {} +",
        "install -m 4755 a b",
        "install -Dm4755 a b",
        "install --mode=u+s a b",
        "install --mode 6755 a b",
    ],
)
def test_other_rights_take_a_person_also_in_the_mode_auto(line):
    assert decided(line).once_only, "no rule and no grant may answer it"
    found = decided(line, "allow: shell", mode="auto")
    assert (found.verdict, found.reason.endswith("; only a person may allow that")) == (
        "deny",
        True,
    )


@pytest.mark.parametrize(
    "line",
    [
        "chmod 755 tool",
        "chmod 0644 2755",
        "chmod +x tool",
        "chmod 1777 shared",
        "chmod u-s tool",
        "install -m 755 a b",
        "install -d 4755",
    ],
)
def test_ordinary_modes_of_files_take_no_person(line):
    assert not decided(line).once_only


@pytest.mark.parametrize(
    "line",
    [
        "${X} -rf /",
        "$X -rf /",
        '"$CMD" -rf /',
        "$X -rf ~",
        "$X -fr ~/",
        "$X -rf ~/*",
        "$X -r -f /*",
        '$X -rf "$HOME"',
        "$X -Rf ${HOME}",
        "$X --recursive --force /",
        "$X -rf /etc",
        "$X -rf -- /usr/*",
        "r$X -rf /",
        "$A$B -rf /",
        "$(echo rm) -rf /",
        "`echo rm` -rf /",
        "env $X -rf /",
        "sudo $X -rf /",
        "cd src && $X -rf /",
        "sh -c '$X -rf /'",
        'eval "$X -rf /"',
        "/bin/r? -rf /",
    ],
)
def test_a_program_of_unknown_name_that_may_delete_everything_is_never_run(line):
    for mode in ("ask", "auto"):
        assert decided(line, "allow: shell", mode=mode).verdict == "deny", mode
    assert understood(line).floor


@pytest.mark.parametrize(
    "line", ["$X -r /", "$X -rf build", "$PYTHON -m pytest", "$X --force /", "$X -rf /srv/a/b"]
)
def test_a_program_of_unknown_name_with_other_words_is_asked_about(line):
    assert (understood(line).floor, decided(line).verdict) == ("", "ask")
