"""A fake server from the command line."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bridle.messages import user
from bridle.protocols.provider import Request, drain
from bridle.providers.anthropic import Anthropic
from bridle.testing.serve import main


def test_a_script_is_served_until_the_server_is_interrupted(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": [{"text": "from the file", "pings": 1}]}))
    command = [sys.executable, "-m", "bridle.testing.serve", "anthropic", "--script", str(script)]

    async def ask(url: str) -> str:
        provider = Anthropic("m", api_key="k", base_url=url)
        try:
            return (await drain(provider.stream(Request([user("go")])))).content
        finally:
            await provider.close()

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert asyncio.run(ask(child.stdout.readline().strip())) == "from the file"
            child.send_signal(signal.SIGINT)
            assert child.wait() == 130
        finally:
            child.kill()


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "cannot be used"), ("{}", "no list of replies"), ('{"replies": [{"x": 1}]}', "`x`")],
)
def test_a_wrong_script_is_one_readable_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    script = tmp_path / "script.json"
    script.write_text(text)
    assert main(["openai", "--script", str(script)]) == 1
    assert words in capsys.readouterr().err
