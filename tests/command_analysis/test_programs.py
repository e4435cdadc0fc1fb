"""The table of known programs: every entry is held to its own examples."""

import pytest
from deciding import decided, verdict
from imagined import Imagined

from bridle.command_analysis import checks, effects, programs
from bridle.command_analysis.argv import flag_table, operand_kinds

TABLE = programs.PROGRAMS
FREE = ("", "?", "=", "==")
# Lines that build or test the workspace, as people type them.
BUILDS = (
    "pytest",
    "pytest -x -q tests",
    "pytest tests/test_a.py::test_b -k 'a and b'",
    "python -m pytest",
    "python3 -m pytest -q",
    "python -m unittest",
    "make",
    "make test -j4",
    "make -C src check",
    "npm test",
    "npm run build",
    "yarn test",
    "pnpm run lint",
    "cargo build --release",
    "cargo test",
    "cargo clippy --all-targets",
    "cargo fmt --check",
    "go build ./...",
    "go test ./... -run X -v",
    "go vet ./...",
    "mvn -q test",
    "gradle build",
    "./gradlew test",
    "ruff check .",
    "black --check .",
    "mypy src",
    "flake8 src",
    "eslint src --ext .ts",
    "tsc --noEmit",
    "prettier --check src",
    "jest",
    "vitest --run",
    "cmake --build build",
    "ninja -C src",
    "ctest --output-on-failure",
    "tox -e py311",
    "dotnet test",
    "mix test",
    "bundle exec rspec",
    "rake test",
    "phpunit --filter x",
    "uv run pytest",
    "./manage.py test",
    "python manage.py test app",
    "npx --no-install jest",
    "cargo tree",
    "poetry run pytest -q",
    "timeout 60 pytest",
    "CI=1 npm test",
    ".venv/bin/pytest -q",
    "node_modules/.bin/jest",
    "python -m mypy src",
    "ruff format --check src && pytest",
    "cd src && make",
    "pytest | tail -20",
    "pytest 2>&1 | grep -i fail",
)


def entries(found):
    """An entry and all of its verbs."""
    yield found
    for verb in found.subcommands.values():
        yield from entries(verb)


EVERY = [(name, entry) for name, top in TABLE.items() for entry in entries(top)]


def test_everyday_lines_run_unasked():
    asked = [line for entry in TABLE.values() for line in entry.runs if verdict(line) != "allow"]
    assert asked == []


def test_there_are_enough_everyday_lines():
    assert len({line for entry in TABLE.values() for line in entry.runs}) >= 250


def test_lines_that_are_not_harmless_ask():
    ran = [line for entry in TABLE.values() for line in entry.asks if verdict(line) == "allow"]
    assert ran == []


def test_builds_are_a_class_of_their_own():
    other = [line for line in BUILDS if verdict(line) != "builds"]
    assert other == []


def test_every_program_that_reads_has_an_example():
    bare = [name for name, entry in TABLE.items() if entry.does == "reads" and not entry.runs]
    assert set(bare) <= {"return", "times", "readonly", "local", "typeset", "hadolint"}


def test_what_an_entry_names_is_there():
    kinds = {
        kind[1:] for _, e in EVERY for kind in flag_table(e.flags).values() if kind not in FREE
    }
    for _, entry in EVERY:
        first, repeated, last = operand_kinds(entry.operands)
        kinds |= {*first, repeated or "text", *last}
    assert kinds - set(effects.OPERAND_KINDS) == set()


def test_flags_that_stand_for_others_are_flags_of_the_entry():
    wrong = [
        (name, word)
        for name, entry in EVERY
        for word in f"{entry.operand_flags} {entry.required_flags}".split()
        if word not in flag_table(entry.flags) and entry.check is not checks.interpreter
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "line", ["git status", "git log -3", "git diff", "cd src && git show HEAD"]
)
def test_git_asks_where_its_configuration_can_run_programs(line):
    assert verdict(line) == "allow"
    assert verdict(line, machine=Imagined(tame=False)) == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "git status", "git add README.md", "git -C src log", "git --git-dir=src status",
        "git rebase -x 'make test' HEAD~3", "cd src && git commit -m x", "env LANG=C git diff",
    ],
)  # fmt: skip
def test_no_rule_and_no_mode_lets_git_run_what_the_repository_says(line):
    wild = Imagined(tame=False)
    decision = decided(line, "allow: shell", machine=wild)
    assert (decision.verdict, decision.once_only) == ("ask", True)
    assert "can run programs" in decision.reason
    assert verdict(line, "allow: shell", mode="auto", machine=wild) == "deny"
    assert verdict(line, "allow: shell") == "allow"


@pytest.mark.parametrize(
    "line",
    ["GIT_DIR=src git status", "export GIT_CONFIG_GLOBAL=x", "env GIT_CONFIG_COUNT=1 git log"],
)
def test_no_rule_has_git_read_another_configuration(line):
    assert decided(line, "allow: shell").once_only


@pytest.mark.parametrize(
    "line",
    [
        "make deploy", "make test deploy", "make publish-docs", "npm run release",
        "yarn run deploy:prod", "mvn deploy", "mvn -q install", "./gradlew publishToMavenLocal",
        "gradle :app:upload", "rake release", "tox -e publish", "nox -s release",
        "ninja install", "make git_push", "make uninstall", "cmake --build build --target install",
    ],
)  # fmt: skip
def test_a_target_whose_name_says_that_it_leaves_the_workspace_is_no_build(line):
    assert verdict(line) == "ask"


@pytest.mark.parametrize(
    "line", ["make installer", "gradle assembleRelease", "cargo build --release", "make pushdown"]
)
def test_a_target_that_only_sounds_alike_is_a_build(line):
    assert verdict(line) == "builds"


def test_a_shortened_long_flag_is_an_unknown_one():
    lines = ("grep --reg=x README.md", "sort --rev README.md", "ls --al", "head --line=1 README.md")
    assert [verdict(line) for line in lines] == ["ask"] * 4


@pytest.mark.parametrize("name", ["python3", "python3.12", "python2.7", "pip3.11", "node18"])
def test_a_version_in_the_name_is_the_same_program(name):
    assert programs.find(name) is not None
    assert verdict(f"{name} --version") == "allow"


def test_a_module_of_python_is_its_program():
    assert verdict("python -m pytest -q") == "builds"
    assert verdict("python -m json.tool package.json") == "builds"
    assert verdict("python -I -m json.tool package.json") == "allow"
    assert verdict("python -m http.server") == "ask"
    assert verdict("python -m pip install x") == "ask"
