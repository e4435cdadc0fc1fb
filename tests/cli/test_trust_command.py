"""`bridle trust`: a folder's own files count after they were shown, and as long as they stay."""


def write(bridle, name, text):
    path = bridle.workspace / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_a_folder_that_sets_nothing_needs_no_trust(bridle):
    done = bridle.run("trust")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing to trust" in done.stdout
    assert bridle.run("trust", "--list").stdout == "No folder is trusted.\n"


def test_it_shows_the_files_in_full_and_harmless_and_asks(bridle):
    write(bridle, "AGENTS.md", "be kind\n\x1b[2Jand \u202equiet\n")
    with bridle.terminal("trust") as terminal:
        terminal.expect("be kind")
        terminal.expect("Trust these files")
        terminal.type("n\n")
        terminal.expect("nothing was changed; ")
        assert terminal.end()[0] == 1
        assert "\x1b[2J" not in terminal.everything
        assert "\u202e" not in terminal.everything
    assert bridle.run("trust", "--list").stdout == "No folder is trusted.\n"
    with bridle.terminal("trust") as terminal:
        terminal.expect("Trust these files")
        terminal.type("y\n")
        assert terminal.end()[0] == 0
    assert str(bridle.workspace) in bridle.run("trust", "--list").stdout


def test_nobody_to_ask_is_a_no(bridle):
    write(bridle, "AGENTS.md", "be kind\n")
    done = bridle.run("trust")
    assert done.returncode == 2
    assert "--yes" in done.stderr


def test_a_changed_file_is_named(bridle):
    write(bridle, "AGENTS.md", "be kind\n")
    write(bridle, ".bridle/policy.yaml", "rules: []\n")
    assert bridle.run("trust", "--yes").returncode == 0
    assert "All of these files are trusted already." in bridle.run("trust").stdout
    write(bridle, "AGENTS.md", "be cruel\n")
    assert "changed since: AGENTS.md" in bridle.run("trust", "--list").stdout


def test_trust_is_taken_back(bridle):
    write(bridle, "AGENTS.md", "be kind\n")
    bridle.run("trust", "--yes")
    assert "is no longer trusted" in bridle.run("trust", "--remove").stdout
    assert "was not trusted" in bridle.run("trust", "--remove").stdout
    assert bridle.run("trust", "--list").stdout == "No folder is trusted.\n"


def test_rules_that_cannot_be_understood_are_not_trusted(bridle):
    write(bridle, ".bridle/policy.yaml", "rules: {\n")
    done = bridle.run("trust", "--yes")
    assert done.returncode == 2
    assert "this is not YAML" in done.stderr
    assert bridle.run("trust", "--list").stdout == "No folder is trusted.\n"


def test_a_folder_that_is_not_there_is_said(bridle):
    done = bridle.run("trust", "nowhere")
    assert done.returncode == 2
    assert "there is no folder" in done.stderr
