"""What a rule keeps from being read is not found by a search, either."""

import pytest

from bridle.providers.scripted import Scripted
from bridle.runtime.assembly import build_engine
from rig import call, results, run


@pytest.mark.parametrize("rule", ["deny: read(private/**)", "ask: read(private/*.txt)"])
def test_a_search_leaves_out_what_a_rule_keeps_from_being_read(tmp_path, rule):
    for name in ("private/key.txt", "open/key.txt"):
        (tmp_path / "work" / name).parent.mkdir(parents=True)
        (tmp_path / "work" / name).write_text("the word is quokka\n")

    async def work():
        model = Scripted(
            [
                call("grep", pattern="quokka"),
                call("grep", pattern="q", path="private/key.txt"),
                "ok",
            ]
        )
        options = {"workspace": tmp_path / "work", "state": tmp_path / "state"}
        async with build_engine(model, rules=[rule], **options) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return results(engine, session.id)

    (_, found, _), (_, refused, failed) = run(work())
    assert found == "open/key.txt:1:the word is quokka"
    assert failed and "not run" in refused
