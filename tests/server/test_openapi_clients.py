"""Clients that others' generators make of the OpenAPI documents: both generate, and one is used."""

import asyncio
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rig_server import server

from rig import run

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(600)


def test_the_types_of_the_page_are_those_of_the_documents():
    """If this fails, run scripts/api-types and build the page."""
    done = subprocess.run(
        [ROOT / "scripts/api-types", "check"],
        env={"PYTHON": sys.executable, "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def generate(document, folder):
    """Have openapi-python-client make a package of a document."""
    file = folder / "openapi.json"
    file.write_text(json.dumps(document))
    programs = str(Path(sys.executable).parent)
    command = [f"{programs}/openapi-python-client", "generate", "--fail-on-warning"]
    done = subprocess.run(
        [*command, "--path", str(file), "--meta", "none", "--output-path", str(folder / "made")],
        cwd=folder,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_generated_python_client_talks_to_the_server(tmp_path, monkeypatch):
    async def work():
        async with server(tmp_path, [{"text": "hello"}]) as there:
            document = (await there.get("/api/openapi.json")).body
            await asyncio.to_thread(generate, document, tmp_path)
            monkeypatch.syspath_prepend(tmp_path)
            await asyncio.to_thread(talk, there.url, there.token)

    run(work())


def talk(url, token):
    """What a person would write with the generated client."""
    with importlib.import_module("made").AuthenticatedClient(url, token) as client:
        models = importlib.import_module("made.models")

        def operation(module):
            return importlib.import_module(f"made.api.{module}").sync

        made = operation("sessions.create_session")(
            client=client, body=models.NewSession(title="generated")
        )
        sent = operation("prompts.send_prompt")(
            made.id, client=client, wait=True, body=models.PromptRequest(prompt="hi")
        )
        assert (sent.turn, sent.text) == (1, "hello")
        (listed,) = operation("sessions.list_sessions")(client=client).sessions
        assert (listed.id, listed.title) == (made.id, "generated")
