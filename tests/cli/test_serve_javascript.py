"""The JavaScript client of the examples, against the real server (A12)."""

import json
import os
import subprocess
from pathlib import Path

from cli_program import Program
from serve_program import served

from node.rig import node

CLIENT = Path(__file__).parents[2] / "examples" / "http_client.mjs"
SHELL = {"calls": [{"name": "shell", "arguments": {"command": "echo made > made.txt"}}]}


SPLIT = """
import { blocks } from %s;
const text =
  ": hi\\r\\n\\r\\nid: 1\\r\\nevent: a\\r\\ndata: x\\r\\ndata: y\\r\\n\\r\\n" +
  "id: 2\\n\\ndata: z\\n\\n";
const wanted = JSON.stringify([
  { id: "1", event: "a", data: "x\\ny" }, { id: "2", event: "message" },
  { event: "message", data: "z" },
]);
for (let size = 1; size < 40; size += 1) {
  const chunks = text.match(new RegExp(`[^]{1,${size}}`, "g"));
  const found = [];
  for await (const block of blocks(chunks)) found.push(block);
  if (JSON.stringify(found) !== wanted) throw new Error(`${size}: ${JSON.stringify(found)}`);
}
"""


def test_its_parser_takes_any_chunking():
    """(A12)"""
    program = SPLIT % json.dumps(CLIENT.as_uri())
    command = [node(), "--input-type=module", "-e", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")


def test_it_talks_answers_and_takes_a_session_up_again(bridle: Program):
    """(A12) Creates and resumes sessions, parses SSE, answers approvals, works as a REPL."""
    with served(bridle, "-m", bridle.script("Hello.", SHELL, "Made.", "Again.")) as server:
        environ = {**os.environ, "BRIDLE_TOKEN": server.token}
        first = talk([server.url], environ, [("> ", "hi"), ("Hello.", ""), ("> ", "make it")])
        first.read_until("allow? [y/N] ")
        first.type("y")
        first.read_until("allowed by me")
        first.read_until("Made.")
        assert first.leave() == 0
        assert (bridle.workspace / "made.txt").read_text() == "made\n"
        [line] = server.ask("GET", "/api/sessions")["sessions"]
        second = talk([server.url, line["id"]], environ, [("> ", "more"), ("Again.", "")])
        assert second.leave() == 0


def test_on_a_terminal_the_next_question_erases_nothing_of_a_reply(bridle: Program):
    with served(bridle, "-m", bridle.script("Hello.")) as server:
        ours, theirs = os.openpty()
        environ = {**os.environ, "BRIDLE_TOKEN": server.token, "TERM": "xterm"}
        line = [node(), str(CLIENT), server.url]
        process = subprocess.Popen(line, stdin=theirs, stdout=theirs, stderr=theirs, env=environ)
        os.close(theirs)
        read_from(ours, b"> ")
        os.write(ours, b"hi\r")
        _, _, rest = read_from(ours, b"Hello.").partition(b"Hello.")
        seen = read_from(ours, b"> ", rest)
        process.kill()
        process.wait(30)
        os.close(ours)
    assert b"\n" in seen.partition(b"\x1b")[0]


def read_from(handle, text, seen=b""):
    """What a terminal shows, until that is among it; some may have been read before."""
    while text not in seen:
        seen += os.read(handle, 4096)
    return seen


class Talk:
    """The client in pipes."""

    def __init__(self, arguments, environ):
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [node(), str(CLIENT), *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env=environ
        )
        self._seen = b""

    def read_until(self, text):
        while text.encode() not in self._seen:
            data = os.read(self._process.stdout.fileno(), 4096)
            assert data, (self._seen, self._process.stderr.read())
            self._seen += data
        self._seen = self._seen.partition(text.encode())[2]

    def type(self, line):
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def leave(self):
        self._process.communicate(timeout=240)
        return self._process.returncode


def talk(arguments, environ, lines):
    found = Talk(arguments, environ)
    for expected, line in lines:
        found.read_until(expected)
        if line:
            found.type(line)
    return found
