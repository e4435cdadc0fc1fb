"""`bridle approvals answer`: show a pending approval in full, and send an answer to its session.

The answer is a message to the process that owns the session now or next. It applies to exactly what
was shown.
"""

import sys
from collections.abc import Sequence

import click

from bridle.cli.commands.approvals.list import (
    PendingRequest,
    groups_of,
    how_to_continue,
    pending_requests,
)
from bridle.cli.find import last_part, session_folder
from bridle.cli.options import SESSION
from bridle.cli.output import print_json, print_result
from bridle.cli.style import paint_for, width_of
from bridle.cli.user_input import user_name
from bridle.errors import UnknownApproval, UsageError
from bridle.protocols.session import Answer
from bridle.stores.locks import describe_owner
from bridle.stores.reader import SessionFolder


@click.command("answer")
@click.argument("name", metavar="ID-OR-CALL", type=SESSION)
@click.argument("said", metavar="[yes|no]", required=False, type=click.Choice(("yes", "no")))
@click.option(
    "--scope",
    type=click.Choice(("once", "session", "rule")),
    help="What yes allows. once: this call (default). session: the same call for this session; "
    "for a test or build, all tests and builds in the folder. rule: a rule in your policy.yaml.",
)
@click.option("--word", metavar="TEXT", help="Message for the model, such as what to do instead.")
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Answer every request in the same group; with a session ID, every pending request.",
)
@click.option("--by", metavar="NAME", help="Who answers. Default: your login name.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object; with --all, an array.")
def command(
    name: str,
    said: str | None,
    scope: str | None,
    word: str | None,
    every: bool,
    by: str | None,
    as_json: bool,
) -> None:
    """Allow (yes) or deny (no) a pending approval: of a session (ID), of a call, or ID/CALL.

    The request is shown in full first. If you omit yes or no, you are asked, in a terminal. The
    answer applies to exactly what was shown, and the first answer counts. To answer a question of
    the model (ask_user), use yes with --word.
    """
    folder = session_folder()
    pending = pending_requests(folder)
    requests = find_group(pending, name) if every else [find_one(pending, name)]
    for request in requests:
        check_open(request)
    _show(requests)
    if said is None:
        answers = _ask(requests)
    else:
        answers = [_to_answer(said, scope, word or "", requests)] * len(requests)
    owners = [_send(folder, *pair, by) for pair in zip(requests, answers, strict=True)]
    _report(pending, requests, answers, owners, array=every, as_json=as_json)


def _report(
    pending: Sequence[PendingRequest],
    requests: Sequence[PendingRequest],
    answers: Sequence[Answer],
    owners: Sequence[str],
    *,
    array: bool,
    as_json: bool,
) -> None:
    session_id = requests[0].pending.session_id
    left = sum(o.pending.session_id == session_id and o.sent is None for o in pending)
    left -= len(requests)
    if as_json:
        values = [
            {
                "id": request.handle,
                "session": session_id,
                "allowed": answer.allowed,
                "scope": answer.scope,
                "word": answer.word,
                "holder": owner,
                "left": left,
            }
            for request, answer, owner in zip(requests, answers, owners, strict=True)
        ]
        print_json(values if array else values[0])
        return
    verbs = dict.fromkeys("allowed" if answer.allowed else "denied" for answer in answers)
    text = " and ".join(verbs) + (f" {len(requests)} requests" if len(requests) > 1 else "")
    more = [f"{left} more in this session: bridle approvals list"] if left else []
    if owners[0]:
        print_result(f"{text}; sent to {owners[0]}", *more)
    else:
        print_result(
            f"{text}; it takes effect when the session is resumed",
            *more,
            how_to_continue(session_id),
        )


def matching(pending: Sequence[PendingRequest], name: str) -> list[PendingRequest]:
    """Return the requests of that call, or of that session. Raise `UnknownApproval`."""
    start, _, call = name.rpartition("/")
    found = [request for request in pending if call == request.pending.asked.call.id]
    if start:
        found = [one for one in found if _is_session(one.pending.session_id, start)]
    found = found or [one for one in pending if _is_session(one.pending.session_id, name)]
    if not found or not name:
        raise UnknownApproval(
            f"no approval is pending under {name!r}",
            hint="It may have been answered already. See `bridle approvals list`.",
        )
    return [request for request in found if request.sent is None] or found


def find_one(pending: Sequence[PendingRequest], name: str) -> PendingRequest:
    """Return the request of that name. Raise `UsageError` if there are several."""
    found = matching(pending, name)
    if len(found) > 1:
        some = ", ".join(request.handle for request in found[:4])
        raise UsageError(
            f"{len(found)} approvals are pending under {name!r}",
            hint=f"Name one of {some}; or use --all.",
        )
    return found[0]


def find_group(pending: Sequence[PendingRequest], name: str) -> list[PendingRequest]:
    """Return all requests of that session, or those in the same group as that call."""
    found = matching(pending, name)
    sessions = {request.pending.session_id for request in found}
    if len(sessions) > 1:
        some = ", ".join(sorted(sessions)[:4])
        raise UsageError(
            f"{len(sessions)} sessions have such requests", hint=f"Name one of {some}."
        )
    first = found[0].pending
    is_call = first.asked.call.id == name.rpartition("/")[2]
    if len(found) == 1 and first.asked.group and is_call:
        found = [
            one
            for one in pending
            if one.pending.session_id == first.session_id
            and one.pending.asked.group == first.asked.group
        ]
    open_ones = [one for one in found if one.sent is None and not one.pending.expired]
    return open_ones or found[:1]


def _is_session(session_id: str, start: str) -> bool:
    return session_id.startswith(start) or last_part(session_id).startswith(start)


def check_open(request: PendingRequest) -> None:
    """Raise `UnknownApproval` if it is too late for an answer."""
    hint = how_to_continue(request.pending.session_id)
    if request.sent is not None:
        verb = "allowed" if request.sent.allowed else "denied"
        by = request.sent.by
        raise UnknownApproval(f"{by} has already {verb} this; the first answer counts", hint=hint)
    if request.pending.expired:
        raise UnknownApproval("the request has expired, so it is denied", hint=hint)


def _show(requests: Sequence[PendingRequest]) -> None:
    """Print the requests in full, on standard error: standard output has the result."""
    from bridle.cli.approval_prompt import full_text

    paint, width = paint_for(sys.stderr), width_of(sys.stderr)
    for group in groups_of(requests):
        click.echo(full_text([one.pending.asked for one in group], paint, width), err=True)


def _to_answer(
    said: str, scope: str | None, word: str, requests: Sequence[PendingRequest]
) -> Answer:
    """Return the answer that the command line gives."""
    if said == "no" and scope in ("session", "rule"):
        raise click.UsageError("--scope is only for yes: no denies this call")
    if said == "no" or scope in (None, "once"):
        return Answer(said == "yes", word=word)
    if any(request.pending.asked.once_only for request in requests):
        raise UsageError("this can only be allowed once", hint="Leave out --scope.")
    if scope == "rule":
        click.echo(_rule_preview(requests), err=True)
        return Answer(True, "rule", word)
    return Answer(True, "session", word)


def _rule_preview(requests: Sequence[PendingRequest]) -> str:
    """Return the rule that would be added, and what it covers. Raise `UsageError`."""
    from bridle.cli.approval_prompt import rule_preview
    from bridle.presentation.approvals import has_rule

    if len(requests) > 1:
        raise UsageError("a rule is made from one request", hint="Leave out --all.")
    asked = requests[0].pending.asked
    if not has_rule(asked):
        raise UsageError(
            "no rule would match this call and nothing else",
            hint="Write a rule yourself, in policy.yaml.",
        )
    return rule_preview(asked, requests[0].pending.session_id)


def _ask(requests: Sequence[PendingRequest]) -> list[Answer]:
    """Ask the person. Raise `UsageError` if no one can be asked."""
    if not (sys.stdin and sys.stdin.isatty()):
        raise UsageError("the answer is missing", hint="Add yes or no: no one can be asked here.")
    from bridle.cli.approval_prompt import group_prompt, parse_group_answers, wants_each

    width = width_of(sys.stderr)
    if len(requests) == 1:
        return [_ask_one(requests[0], width)]

    asked = [request.pending.asked for request in requests]
    line = _read_line(group_prompt(asked, width))
    while (answers := parse_group_answers(line, len(requests))) is None:
        line = _read_line(group_prompt(asked, width))
    if wants_each(line):
        return [_ask_one(request, width, show=True) for request in requests]
    return answers


def _ask_one(request: PendingRequest, width: int, *, show: bool = False) -> Answer:
    from bridle.cli.approval_prompt import answer_prompt, parse_answer

    asked = request.pending.asked
    if show:
        _show([request])
    while True:
        answer = parse_answer(asked, _read_line(answer_prompt(asked, width)))
        if answer.scope != "rule":
            return answer
        click.echo(_rule_preview([request]), err=True)
        if _read_line("  Save this rule? [y/N] ").strip().lower() in ("y", "yes"):
            return answer


def _read_line(prompt: str) -> str:
    click.echo(prompt, nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        raise click.Abort
    return line


def _send(folder: SessionFolder, request: PendingRequest, answer: Answer, by: str | None) -> str:
    """Send an answer; return the process that has the session open, if any."""
    from bridle.cli.session_edit import send_to_inbox

    asked, session_id = request.pending.asked, request.pending.session_id
    owner = describe_owner(folder.path(session_id))
    send_to_inbox(
        folder,
        session_id,
        "answer",
        by or user_name(),
        call_id=asked.call.id,
        shown=asked.shown,
        allowed=answer.allowed,
        scope=answer.scope,
        word=answer.word,
        rule=asked.proposal if answer.scope == "rule" else "",
    )
    return owner
