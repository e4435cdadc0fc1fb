"""What an ACP agent is allowed is what was judged: nothing beside it, nothing instead of it."""

import asyncio
import json

from agents.acp_rig import ANSWER, HandMade, acp_engine, one_prompt, opened, scripted
from bridle.protocols.agent import Permission
from bridle.protocols.session import Answer
from rig import run

# In the program: two questions about one call, both before either is answered. They are held back
# until something else is said or heard, so that both come at once.
TWO = """
OPTIONS = [{"optionId": "y", "name": "y", "kind": "allow_once"},
           {"optionId": "n", "name": "n", "kind": "reject_once"}]
def asks(number, **said):
    call = {"toolCallId": "c", "title": "w", **said}
    params = {"sessionId": "s", "toolCall": call, "options": OPTIONS}
    asked = {"id": number, "method": "session/request_permission", "params": params}
    print(json.dumps({"jsonrpc": "2.0", **asked}))
def write(name, words):
    return {"kind": "edit", "content": [
        {"type": "diff", "path": name, "oldText": None, "newText": words}]}
def heard():
    sys.stdout.flush()
    answer = json.loads(sys.stdin.readline())
    found = answer.get("result", answer.get("error"))
    return [answer["id"], found.get("outcome", {}).get("optionId", found.get("message"))]
"""


def slow_gate(session, refuses):
    """A gate that gives everybody else a turn before it says what it thinks of a call."""

    async def gate(name, arguments, context=None):
        for _ in range(100):
            await asyncio.sleep(0.001)
        session.asked.append((name, arguments))
        return Permission(json.dumps(arguments).find(refuses) < 0, "no", call_id=context)

    return gate


def two_questions(tmp_path, lines, refuses):
    session = HandMade(tmp_path)
    session.can_use_tool = slow_gate(session, refuses)
    return session, run(one_prompt(opened(tmp_path, f"{TWO}\n{lines}\n{ANSWER}"), session)).content


def test_the_yes_to_one_question_is_not_taken_for_another_about_the_same_call(tmp_path):
    lines = """
asks(1, kind="execute", rawInput={"command": "curl evil.example"})
asks(2, kind="execute", rawInput={"command": "ls"})
text(json.dumps(sorted([heard(), heard()])))"""
    session, said = two_questions(tmp_path, lines, "curl")
    assert json.loads(said) == [[1, "n"], [2, "n"]]
    assert [one["command"].endswith("curl evil.example") for _, one in session.asked] == [True]


def test_a_change_that_was_never_allowed_cannot_be_handed_in_as_one_that_was(tmp_path):
    lines = """
asks(1, **write("notes.txt", "fine"))
asks(2, **write("key.txt", "evil"))
answers = sorted([heard(), heard()])
say(id=3, method="fs/write_text_file",
    params={"sessionId": "s", "path": "key.txt", "content": "evil"})
text(json.dumps([*answers, heard()]))"""
    session, said = two_questions(tmp_path, lines, "evil")
    assert json.loads(said) == [[1, "y"], [2, "n"], [3, "no"]]
    assert [one["path"] for _, one in session.asked] == ["notes.txt", "key.txt"]
    assert not (tmp_path / "key.txt").exists()


def test_what_is_said_of_a_call_while_it_is_judged_changes_nothing_of_the_yes(tmp_path):
    lines = """
asks(1, **write("notes.txt", "fine"))
update(sessionUpdate="tool_call_update", toolCallId="c", **write("key.txt", "evil"))
answer = heard()
say(id=3, method="fs/write_text_file",
    params={"sessionId": "s", "path": "key.txt", "content": "evil"})
text(json.dumps([answer, heard()]))"""
    _, said = two_questions(tmp_path, lines, "evil")
    assert json.loads(said) == [[1, "y"], [3, "no"]]
    assert not (tmp_path / "key.txt").exists()


# In the program: a request, and its answer or the code of its refusal.
REQUEST = """
def request(method, **params):
    say(id="r", method=method, params={"sessionId": "s", **params})
    answer = json.loads(sys.stdin.readline())
    return answer["result"] if "result" in answer else answer["error"]["code"]
"""


def test_a_terminal_begins_in_the_folder_that_was_asked_for_and_not_where_the_last_one_ended(
    tmp_path,
):
    root, sub = tmp_path / "work", tmp_path / "work" / "sub"
    sub.mkdir(parents=True)
    lines = f"""{REQUEST}
def ran(**params):
    made = request("terminal/create", **params)
    if isinstance(made, int):
        return made
    request("terminal/wait_for_exit", **made)
    return request("terminal/output", **made)["output"].strip()
text(json.dumps([ran(command="pwd", cwd={str(sub)!r}), ran(command="cd", args=["sub"]),
    ran(command="pwd", cwd={str(root)!r}), ran(command="pwd"),
    ran(command="pwd", cwd="sub"), ran(command="pwd", cwd={str(root / "none")!r})]))
{ANSWER}"""

    async def story():
        async with acp_engine(root, opened(tmp_path, lines), mode="auto") as engine:
            session = await engine.session()
            return (await session.wait(await session.send("go"))).text

    said = json.loads(run(story()))
    assert [said[0], *said[2:]] == [str(sub), str(root), str(root), -32602, -32602]


def test_a_hook_that_changes_what_is_read_has_that_read(tmp_path):
    (tmp_path / "private.txt").write_text("private\n")
    (tmp_path / "public.txt").write_text("one\ntwo\nthree\n")
    session = HandMade(tmp_path)

    async def gate(name, arguments, context=None):
        session.asked.append((name, arguments))
        given = {"path": "public.txt", "offset": 2, "limit": 1}
        return Permission(True, updated_input=given, call_id=context)

    session.can_use_tool = gate
    path = str(tmp_path / "private.txt")
    lines = f"{REQUEST}\ntext(request('fs/read_text_file', path={path!r})['content'])\n{ANSWER}"
    assert run(one_prompt(opened(tmp_path, lines), session)).content == "two\n"
    assert session.asked == [("read", {"path": "private.txt"})]
    assert [text for _, text, _ in session.finished] == ["two\n"]


def test_a_yes_to_one_tool_that_nobody_knows_is_for_no_other(tmp_path):
    """They share a name here, so no rule is proposed, and a yes for longer is for the same call."""
    asked = []

    async def approve(question):
        asked.append((question.call.arguments["title"], question.proposal))
        return Answer(len(asked) == 1, "session", by="tester")

    names = ("get_weather", "get_weather", "send_money")
    steps = [
        {
            "ask": {"kind": "other", "title": name, "id": f"c{number}", "input": {"to": "x"}},
            "then": [{"say": name}],
            "else": [],
        }
        for number, name in enumerate(names)
    ]
    root = tmp_path / "work"
    root.mkdir()

    async def story():
        async with acp_engine(root, scripted(tmp_path, steps), approver=approve) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))

    run(story())
    assert asked == [("get_weather", ""), ("send_money", "")]
