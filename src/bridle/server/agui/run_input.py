"""What a front end sends for a run, in our words. Pure.

Only the newest message of the person counts, and only as a prompt: the history that a front end
sends along is its own account, and the log has ours. Answers name the question that was shown.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from ag_ui import core
from msgspec import Struct
from pydantic import ValidationError

from bridle.messages import File, Image, Part, Text
from bridle.protocols.session_errors import BadRequest
from bridle.protocols.session_values import ApprovalAnswer, NewSession
from bridle.workspace.text import one_line

LONGEST = 200  # characters of a thread's or a run's name
_SCOPES = ("once", "session", "rule")


class InterruptAnswer(Struct, frozen=True):
    """The answer to one question."""

    session_id: str
    call_id: str
    answer: ApprovalAnswer


class RunRequest(Struct, frozen=True):
    """A run that is asked for: a prompt, or answers, or neither (then what runs is followed)."""

    thread: str
    run: str
    parts: tuple[Part, ...] = ()
    message: str = ""  # whose prompt it is
    answers: tuple[InterruptAnswer, ...] = ()
    new: NewSession = NewSession()


def interrupt_id(session_id: str, call_id: str, shown: str) -> str:
    """How an answer names a question: where, about which call, and what was shown."""
    return f"{session_id}/{call_id}/{shown}"


def parse_run_input(data: Any) -> RunRequest:
    """What is asked for. Raise `BadRequest`."""
    try:
        found = core.RunAgentInput.model_validate(data)
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        raise BadRequest(f"that is no run of AG-UI: {where or 'its body'} does not fit") from error
    for name in (found.thread_id, found.run_id):
        if not name or len(name) > LONGEST or not name.isprintable():
            raise BadRequest(f"a thread and a run have names of 1 to {LONGEST} letters")
    if found.tools:
        names = ", ".join(one_line(one.name, 40) for one in found.tools[:5])
        raise BadRequest(
            f"tools of the front end are not offered to the model here: {names}",
            hint="Run it without tools; an MCP server can bring tools of your own.",
        )
    answers = tuple(map(_said, found.resume or ()))
    newest = found.messages[-1] if found.messages else None
    prompt: tuple[Part, ...] = ()
    message = ""
    if not answers and isinstance(newest, core.UserMessage):
        prompt, message = _parts(newest, found.context or ()), newest.id
    return RunRequest(
        found.thread_id, found.run_id, prompt, message, answers, _new(found.forwarded_props)
    )


def _parts(message: core.UserMessage, context: Sequence[core.Context]) -> tuple[Part, ...]:
    content = message.content
    parts = (Text(content),) if isinstance(content, str) else tuple(map(_part, content))
    if not any(not isinstance(one, Text) or one.text.strip() for one in parts):
        raise BadRequest("the newest message says nothing", hint="Say what you want done.")
    about = "".join(f"{one.description}: {one.value}\n" for one in context)
    return (Text(f"<context>\n{about}</context>\n\n"), *parts) if about else parts


def _part(part: Any) -> Part:
    if isinstance(part, core.TextPart):
        return Text(part.text)
    source = getattr(part, "source", None)
    if isinstance(source, core.DataSource):
        if isinstance(part, core.ImagePart):
            return Image(source.mime_type, source.value)
        if isinstance(part, core.DocumentPart):
            return File(source.mime_type, source.value)
    raise BadRequest(
        f"a prompt cannot hold {part.type} like that",
        hint="Send text, and images and documents with their data.",
    )


def _said(entry: core.ResumeEntry) -> InterruptAnswer:
    session_id, _, rest = entry.interrupt_id.partition("/")
    call_id, _, shown = rest.rpartition("/")
    if not (session_id and call_id and shown):
        raise BadRequest(
            f"there is no interrupt {one_line(entry.interrupt_id, 100)}",
            hint="Answer with the id of an interrupt as it came.",
        )
    if entry.status == "cancelled":
        return InterruptAnswer(session_id, call_id, ApprovalAnswer(False, shown))
    payload = entry.payload
    if isinstance(payload, bool):
        return InterruptAnswer(session_id, call_id, ApprovalAnswer(payload, shown))
    if not isinstance(payload, dict) or not isinstance(payload.get("allowed"), bool):
        raise BadRequest(
            "an answer says in its payload whether it is a yes",
            hint='For example {"allowed": true}; the interrupt has the whole schema.',
        )
    return InterruptAnswer(session_id, call_id, _answer(payload, shown))


def _answer(payload: dict[str, Any], shown: str) -> ApprovalAnswer:
    scope: Literal["once", "session", "rule"] = payload.get("scope", "once")
    word, rule = payload.get("word", ""), payload.get("rule", "")
    if scope not in _SCOPES or not isinstance(word, str) or not isinstance(rule, str):
        raise BadRequest("the answer does not fit the schema that the interrupt has")
    return ApprovalAnswer(payload["allowed"], shown, scope, word, rule)


def _new(props: Any) -> NewSession:
    """How a new session is to be, where the front end says so: `forwardedProps.bridle`."""
    wanted = props.get("bridle") if isinstance(props, dict) else None
    if wanted is None:
        return NewSession()
    try:
        return msgspec.convert(wanted, NewSession)
    except msgspec.ValidationError as error:
        raise BadRequest(f"forwardedProps.bridle does not fit: {error}") from error
