"""What a server runs of the workspace: whoever may edit files there does not decide what starts."""

import sys
from pathlib import Path

import pytest
from mcp_rig import RAW, look, raw, serving, source_of

from bridle.config.trust import HOOKS, SERVERS, Trust
from bridle.errors import ToolError
from bridle.tools.mcp.spec import ServerSpec
from bridle.workspace.programs import fingerprints, mentioned_files
from rig import run

REFUSED = (
    "mine is not started: tools/srv.py, which its command names, is not what it was when it was "
    "accepted. A person has to look: `bridle mcp test mine --accept` accepts it."
)


def script(root):
    """A server in the workspace, which works; what it runs besides says that it ran."""
    path = root / "tools/srv.py"
    path.parent.mkdir()
    path.write_text(
        f"import runpy, sys\nsys.argv[1:] = ['fine']\nrunpy.run_path({RAW!r}, {{}}, '__main__')\n"
    )
    return path


def rewrite(path, root):
    path.write_text(f"from pathlib import Path\nPath({str(root / 'RAN')!r}).write_text('x')\n")


def mine(**more):
    return ServerSpec("mine", (sys.executable, "tools/srv.py"), identity="mine", **more)


async def refused(source, root):
    with pytest.raises(ToolError) as caught:
        await look(source, root, action="tools", server="mine")
    assert not (root / "RAN").exists()
    return caught.value.message


def test_a_script_that_was_rewritten_is_not_started_until_a_person_accepts_it(tmp_path):
    path = script(tmp_path)

    async def work():
        async with serving(tmp_path, mine()) as source:
            await look(source, tmp_path, action="tools", server="mine")
        async with serving(tmp_path, mine()) as source:
            honest = path.read_text()
            rewrite(path, tmp_path)
            assert await refused(source, tmp_path) == REFUSED
            path.write_text(honest + "# other\n")
            assert await refused(source, tmp_path) == REFUSED
            async with serving(tmp_path, mine()) as other:
                other.servers["mine"].accept_files()
            assert (await look(source, tmp_path, action="tools", server="mine")).ok

    run(work())


def test_what_was_first_seen_counts_though_it_was_never_started(tmp_path):
    path = script(tmp_path)

    async def work():
        source_of(tmp_path, mine())
        rewrite(path, tmp_path)
        async with serving(tmp_path, mine()) as source:
            assert await refused(source, tmp_path) == REFUSED
            assert not source.servers["mine"].is_known

    run(work())


def test_a_script_of_another_workspace_is_another(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for root in (one, other):
        root.mkdir()
        script(root)
    rewrite(other / "tools/srv.py", other)

    async def work():
        from bridle.engine.json_schema import compile_schema
        from bridle.tools.mcp.pins import Pins
        from bridle.tools.mcp.server import Server

        def server(root):
            pins = Pins(str(tmp_path / "pins"), "mine", "mine")
            return Server(mine(), str(root), pins, compile_schema)

        server(one), server(other)
        rewrite(one / "tools/srv.py", one)
        with pytest.raises(ToolError, match="is not started"):
            await server(one).connect()
        with pytest.raises(ToolError, match="cannot be reached"):  # it is none; but it was started
            await server(other).connect()
        assert (other / "RAN").exists()

    run(work())


def test_a_folders_own_script_has_to_be_trusted_again(tmp_path):
    path = script(tmp_path)

    async def work():
        async with serving(tmp_path, mine(trusted=True)) as source:
            rewrite(path, tmp_path)
            said = await refused(source, tmp_path)
            assert said.endswith("A person has to look: `bridle trust` accepts it.")

    run(work())


@pytest.mark.parametrize(
    "written",
    [
        'command: ["python3", "tools/srv.py"]',
        'command: ["python3", "srv.py"]\n    cwd: tools',
        'command: ["python3", "-m", "tools.srv"]',
        'command: ["sh", "-c", "exec python3 tools/srv.py --quick"]',
        'command: ["python3", "--script=./tools/srv.py"]',
        'command: ["python3"]\n    env: {START: tools/srv.py}',
    ],
)
def test_a_folder_is_trusted_with_what_its_servers_run(tmp_path, written):
    root = tmp_path / "root"
    root.mkdir()
    path = script(root)
    (root / ".bridle").mkdir()
    (root / SERVERS).write_text(f"servers:\n  x:\n    {written}\n")
    trust = Trust(tmp_path / "state")
    trust.grant(root)
    assert [one.name for one in trust.files(root)] == [SERVERS, "tools/srv.py"]
    assert trust.read(root, SERVERS) is not None
    rewrite(path, root)
    assert trust.read(root, SERVERS) is None and not trust.is_trusted(root)


def test_a_folder_is_trusted_with_what_its_hooks_name(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    path = script(root)
    (root / ".bridle").mkdir()
    (root / "README.md").write_text("x")
    (root / ".bridle/hooks.yaml").write_text(
        "# README.md says more\nbefore_tool:\n  - run: python3 tools/srv.py\n"
    )
    trust = Trust(tmp_path / "state")
    trust.grant(root)
    assert [one.name for one in trust.files(root)] == [".bridle/hooks.yaml", "tools/srv.py"]
    rewrite(path, root)
    assert trust.read(root, HOOKS) is None


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["{root}/a.py"], ["a.py"]),
        (["{root}/sub/../a.py"], ["a.py"]),
        (["{link}/a.py"], ["a.py"]),
        (["npx", "-y", "thing"], ["node_modules/.bin/thing"]),
        (["npm", "start"], ["package.json"]),
        (["node", "sub"], ["sub/index.js"]),
        (["server-of-files", "."], []),
        (["server-of-files", "{root}"], []),
        (["/usr/bin/env", "{root}/../outside.py"], []),
        (["a\0.py", "x" * 5000, ""], []),
    ],
)
def test_the_files_that_words_name(tmp_path, words, found):
    root, link = tmp_path / "root", tmp_path / "link"
    for name in ("a.py", "package.json", "sub/index.js", "node_modules/.bin/thing"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "outside.py").write_text("")
    link.symlink_to(root)
    given = [one.format(root=root, link=link) for one in words]
    assert list(mentioned_files(given, str(root), str(root))) == found


def test_a_file_that_leads_out_is_known_by_where_it_leads(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "python").write_text("x")
    (root / "python").symlink_to(tmp_path / "python")
    names = mentioned_files(["./python"], str(root), str(root))
    assert fingerprints(names, str(root)) == {"python": f"leads to {tmp_path / 'python'}"}


def test_a_server_that_names_nothing_of_the_workspace_is_pinned_as_before(tmp_path):
    spec = raw("fine", Path(tmp_path, "elsewhere"))
    source_of(tmp_path, spec)
    assert not (tmp_path / "pins").exists()


@pytest.mark.parametrize("by_settings", [False, True])
def test_a_program_is_not_found_by_its_name_in_the_workspace(tmp_path, monkeypatch, by_settings):
    """Nor does the server find any there; with its path written out it is one of the files."""
    planted = tmp_path / ".venv/bin/planted-program"
    planted.parent.mkdir(parents=True)
    rewrite(planted, tmp_path)
    planted.write_text(f"#!{sys.executable}\n{planted.read_text()}")
    planted.chmod(0o755)
    path = f"{planted.parent}:.venv/bin:/usr/bin:/bin"
    env = {"PATH": path} if by_settings else {}
    monkeypatch.setenv("PATH", path)
    monkeypatch.chdir(tmp_path)

    async def work():
        spec = ServerSpec("mine", ("planted-program",), env, identity="mine")
        async with serving(tmp_path, spec) as source:
            assert await refused(source, tmp_path) == (
                "mine cannot be reached: there is no program 'planted-program' "
                "outside the workspace."
            )
        spec = ServerSpec("env", ("sh", "-c", f"echo $PATH > {tmp_path}/path"), env, identity="env")
        async with serving(tmp_path, spec) as source:
            with pytest.raises(ToolError):
                await look(source, tmp_path, action="tools", server="env")
        assert (tmp_path / "path").read_text() == "/usr/bin:/bin\n"

    run(work())
