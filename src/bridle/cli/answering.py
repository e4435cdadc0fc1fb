"""`bridle approvals answer`: a question in full, and what a person says to it, sent as a letter.

The letter goes to whoever holds the session, now or next. It counts for exactly what was shown.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.approvals import Open, clusters, waiting
from bridle.cli.options import SESSION
from bridle.cli.style import paint_for, width_of
from bridle.cli.told import tell, tell_json

if TYPE_CHECKING:
    from bridle.protocols.session import Answer
    from bridle.stores.reader import SessionFolder


@click.command("answer")
@click.argument("name", metavar="ID-OR-CALL", type=SESSION)
@click.argument("said", metavar="[yes|no]", required=False, type=click.Choice(("yes", "no")))
@click.option(
    "--scope",
    type=click.Choice(("once", "session", "rule")),
    help="What a yes allows. once: this call (default). session: the same call for this session; "
    "for a test or build, all tests and builds in the folder. rule: a rule in your policy.yaml.",
)
@click.option("--word", metavar="TEXT", help="A word to the model: what to do instead, an answer.")
@click.option("--all", "every", is_flag=True, help="All that belong to it; of a session, all.")
@click.option("--by", metavar="NAME", help="Who answers. Default: your login name.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object; with --all, an array.")
def answer(name: str, said: str | None, **how: Any) -> None:
    """Answer the question of a session (ID), of a call, or of both (ID/CALL).

    The whole question is shown first. Without yes or no it is asked for, at a terminal. The answer
    counts for exactly what was shown; the first answer wins. What ask_user asks is answered with
    yes and --word.
    """
    from bridle.cli.find import session_folder

    folder = session_folder()
    every = waiting(folder)
    found = chosen_all(every, name) if how["every"] else [chosen(every, name)]
    for one in found:
        refuse_late(one)
    _show(found)
    if said is None:
        given = _heard(found)
    else:
        given = [_answer(said, how["scope"], how["word"] or "", found)] * len(found)
    holders = [_send(folder, *pair, how["by"]) for pair in zip(found, given, strict=True)]
    _tell(every, found, given, holders, array=how["every"], as_json=how["as_json"])


def _tell(
    every: Sequence[Open],
    found: Sequence[Open],
    given: "Sequence[Answer]",
    holders: Sequence[str],
    *,
    array: bool,
    as_json: bool,
) -> None:
    session_id = found[0].pending.session_id
    more = sum(o.pending.session_id == session_id and o.sent is None for o in every) - len(found)
    if as_json:
        said = [
            {
                "id": one.handle,
                "session": session_id,
                "allowed": answer.allowed,
                "scope": answer.scope,
                "word": answer.word,
                "holder": holder,
                "left": more,
            }
            for one, answer, holder in zip(found, given, holders, strict=True)
        ]
        tell_json(said if array else said[0])
        return
    words = " and ".join(dict.fromkeys("yes" if one.allowed else "no" for one in given))
    count = f" to {len(found)} questions" if len(found) > 1 else ""
    left = [f"{more} more of this session: bridle approvals list"] if more else []
    if holders[0]:
        tell(f"answered {words}{count}: {holders[0]} takes it", *left)
    else:
        again = goes_on(session_id)
        wait = "nobody holds the session now, so the answer waits"
        tell(f"answered {words}{count}; {wait}", *left, again)


def matching(every: Sequence[Open], name: str) -> list[Open]:
    """The questions of that name: a call's, or a session's. Raise `UnknownApproval`."""
    from bridle.errors import UnknownApproval

    start, _, call = name.rpartition("/")
    found = [one for one in every if call == one.pending.asked.call.id]
    if start:
        found = [one for one in found if _begins(one.pending.session_id, start)]
    found = found or [one for one in every if _begins(one.pending.session_id, name)]
    if not found or not name:
        raise UnknownApproval(
            f"no question waits under {name!r}",
            hint="`bridle approvals list` shows those that do; it may have been answered already.",
        )
    return [one for one in found if one.sent is None] or found


def chosen(every: Sequence[Open], name: str) -> Open:
    """The question of that name. Raise a usage error where there is more than one."""
    found = matching(every, name)
    if len(found) > 1:
        some = ", ".join(one.handle for one in found[:4])
        raise click.UsageError(
            f"{len(found)} questions wait under {name!r}\nName one of {some}; or say --all."
        )
    return found[0]


def chosen_all(every: Sequence[Open], name: str) -> list[Open]:
    """All questions of that session; of a call, those that belong together with it."""
    found = matching(every, name)
    sessions = {one.pending.session_id for one in found}
    if len(sessions) > 1:
        some = ", ".join(sorted(sessions)[:4])
        raise click.UsageError(f"that is in {len(sessions)} sessions\nName one of {some}.")
    group = found[0].pending.asked.group
    if len(found) == 1 and group and found[0].pending.asked.call.id == name.rpartition("/")[2]:
        found = [one for one in every if _is_kin(one, found[0])]
    open_ones = [one for one in found if one.sent is None and not one.pending.expired]
    return open_ones or found[:1]


def _is_kin(one: Open, other: Open) -> bool:
    same = one.pending.session_id == other.pending.session_id
    return same and one.pending.asked.group == other.pending.asked.group


def _begins(session_id: str, start: str) -> bool:
    from bridle.cli.find import last_part

    return session_id.startswith(start) or last_part(session_id).startswith(start)


def goes_on(session_id: str) -> str:
    """How the turn goes on. A program's own tools are in that program alone."""
    from bridle.cli.find import session_folder
    from bridle.stores.session_index import last_run

    if last_run(session_folder().path(session_id)).interface == "library":
        return (
            "only the program that began the session can continue it: "
            f"engine.session({session_id!r}), then session.resume()"
        )
    return f"`bridle run --resume {session_id}` continues the turn"


def refuse_late(one: Open) -> None:
    """Raise `UnknownApproval` where an answer would come too late."""
    from bridle.errors import UnknownApproval

    if one.sent is not None:
        said = "yes" if one.sent.allowed else "no"
        raise UnknownApproval(
            f"it was answered {said} by {one.sent.by} already, and the first answer counts",
            hint=goes_on(one.pending.session_id),
        )
    if one.pending.expired:
        raise UnknownApproval(
            "the question has expired, which counts as a no",
            hint=goes_on(one.pending.session_id),
        )


def _show(found: Sequence[Open]) -> None:
    """The questions in full, on standard error: standard output has what came of it."""
    from bridle.cli.approver import full_text

    paint, width = paint_for(sys.stderr), width_of(sys.stderr)
    for kin in clusters(found):
        click.echo(full_text([one.pending.asked for one in kin], paint, width), err=True)


def _answer(said: str, scope: str | None, word: str, found: Sequence[Open]) -> "Answer":
    """The answer that was given with the command."""
    from bridle.protocols.session import Answer

    if said == "no" and scope in ("session", "rule"):
        raise click.UsageError("a no is for this call; --scope belongs to a yes")
    if said == "no" or scope in (None, "once"):
        return Answer(said == "yes", word=word)
    if any(one.pending.asked.once_only for one in found):
        raise click.UsageError("only a yes for once can be given to this\nLeave --scope out.")
    if scope == "rule":
        click.echo(_previewed(found), err=True)
        return Answer(True, "rule", word)
    return Answer(True, "session", word)


def _previewed(found: Sequence[Open]) -> str:
    """The rule that would be written, and what it covers. Raise a usage error where none would."""
    from bridle.cli.approver import rule_preview
    from bridle.presentation.approvals import has_rule

    if len(found) > 1:
        raise click.UsageError("a rule is made of one question\nLeave --all out.")
    asked = found[0].pending.asked
    if not has_rule(asked):
        raise click.UsageError(
            "no rule would cover this and nothing else\nWrite one yourself, in policy.yaml."
        )
    return rule_preview(asked, found[0].pending.session_id)


def _heard(found: Sequence[Open]) -> "list[Answer]":
    """What the person types. Raise a usage error where there is none."""
    if not (sys.stdin and sys.stdin.isatty()):
        raise click.UsageError("there is no answer\nSay yes or no: nobody is here to be asked.")
    width = width_of(sys.stderr)
    if len(found) == 1:
        return [_one(found[0], width)]
    from bridle.cli import approval_text

    asked = [one.pending.asked for one in found]
    line = _line(approval_text.group_choices(asked, width))
    while (given := approval_text.parse_group_answers(line, len(found))) is None:
        line = _line(approval_text.group_choices(asked, width))
    if approval_text.wants_each(line):
        return [_one(one, width, whole=True) for one in found]
    return given


def _one(one: Open, width: int, *, whole: bool = False) -> "Answer":
    """One answer; `whole`: the question has to be shown again."""
    from bridle.cli.approver import choices_of, parse_answer

    asked = one.pending.asked
    if whole:
        _show([one])
    while True:
        given = parse_answer(asked, _line(choices_of(asked, width)))
        if given.scope != "rule":
            return given
        click.echo(_previewed([one]), err=True)
        if _line("  write this rule? [y/N] ").strip().lower() in ("y", "yes"):
            return given


def _line(text: str) -> str:
    click.echo(text, nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        raise click.Abort
    return line


def _send(folder: "SessionFolder", one: Open, given: "Answer", by: str | None) -> str:
    """Post it; who holds the session, if anybody does."""
    from bridle.cli.user_input import user_name
    from bridle.protocols.store import InboxMessage
    from bridle.runtime.inbox_sender import new_message_id, send_message
    from bridle.stores.locks import describe_owner

    asked, session_id = one.pending.asked, one.pending.session_id
    letter = InboxMessage(
        new_message_id(),
        "answer",
        by or user_name(),
        call_id=asked.call.id,
        shown=asked.shown,
        allowed=given.allowed,
        scope=given.scope,
        word=given.word,
        rule=asked.proposal if given.scope == "rule" else "",
    )
    holder = describe_owner(folder.path(session_id))
    send_message(folder, session_id, letter)
    return holder
