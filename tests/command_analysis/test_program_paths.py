"""A program of the workspace is known by its path from the root, wherever the shell stands."""

import pytest
from deciding import understood, verdict
from imagined import ROOT, Imagined

MACHINE = Imagined(links={"out": "/opt/tool"})


def subjects(line, cwd=ROOT):
    """The commands that do more than read, and the folders in which they run."""
    acts = understood(line, MACHINE, cwd).acts
    return [
        (act.subject, act.within) for act in acts if "shell" in act.names and act.does != "reads"
    ]


@pytest.mark.parametrize(
    ("line", "subject", "within"),
    [
        ("./run.sh x", "./run.sh x", ""),
        ("src/run.sh", "src/run.sh", ""),
        ("cd src && ./run.sh x", "src/run.sh x", "/ws/src"),
        ("cd src && ../run.sh", "./run.sh", "/ws/src"),
        ("cd src && timeout 5 ./run.sh", "src/run.sh", "/ws/src"),
        ("cd src && ../out/run.sh", "out/run.sh", "/ws/src"),
        ("cd src && .venv/bin/python x.py", "src/.venv/bin/python x.py", "/ws/src"),
        ("cd src && /ws/run.sh", "/ws/run.sh", "/ws/src"),
        ("cd src && make", "make", "/ws/src"),
        ("cd src && cd .. && ./run.sh", "./run.sh", ""),
        ("cd /ws && ./run.sh", "./run.sh", ""),
    ],
)
def test_a_program_is_told_by_its_path_from_the_root(line, subject, within):
    assert (subject, within) in subjects(line)


def test_where_the_shell_stands_already_counts_as_well():
    assert subjects("./run.sh", f"{ROOT}/src") == [("src/run.sh", "/ws/src")]


def test_a_rule_for_a_program_does_not_cover_one_of_the_same_name_elsewhere():
    rule = "allow: shell(./run.sh)"
    lines = ("./run.sh", "cd . && ./run.sh", "cd src && ./run.sh", "cd src && sh -c ./run.sh")
    assert [verdict(line, rule) for line in lines] == ["allow", "allow", "ask", "ask"]
    assert verdict("cd src && ./run.sh", "allow: shell(src/run.sh)") == "allow"
    assert verdict("cd src && ./run.sh", "deny: shell(./run.sh)") == "deny"
