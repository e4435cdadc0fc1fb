"""`bridle approvals`: the questions that wait for a person, over all sessions, and answers to them.

Reads logs and inboxes; an answer is a letter to whoever holds the session, now or next.
"""

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bridle.cli.lazy import Lazy
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.cli.told import tell, tell_json

if TYPE_CHECKING:
    from bridle.promises.session import Answer
    from bridle.promises.store import Letter
    from bridle.stores.asking import Pending
    from bridle.stores.reading import SessionFolder

TABLE = {
    "list": ("approvals:list_", "The questions that wait, in all sessions."),
    "answer": ("approvals:answer", "Say yes or no to one of them."),
}


@click.group(name="approvals", cls=Lazy, table=TABLE)
def command() -> None:
    """List the questions that wait for an answer, and answer them, from any terminal."""


class Open(NamedTuple):
    """A question, the title of its session, and an answer that is on its way, if one is."""

    pending: "Pending"
    title: str
    sent: "Letter | None"

    @property
    def handle(self) -> str:
        """What a person types to name it."""
        from bridle.cli.find import handle_of

        return handle_of(self.pending.session_id, self.pending.asked.call.id)

    @property
    def seconds_left(self) -> float | None:
        """Until it counts as a no; None where it never does."""
        return seconds_until(self.pending.asked.expires)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
def list_(as_json: bool) -> None:
    """The questions that wait: what would run, why it asks, until when."""
    from bridle.cli.find import session_folder

    found = waiting(session_folder())
    if as_json:
        tell_json([_named(one) for one in found])
        return
    if not found:
        click.echo("No question waits for an answer.")
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for number, one in enumerate(found):
        click.echo("\n".join(["", *_lines(one, paint, width)][number == 0 :]))


def waiting(folder: "SessionFolder") -> list[Open]:
    """Every open question, with what is known of its answer."""
    from bridle.stores.asking import pending
    from bridle.stores.inbox import letters

    titles = {one.id: one.title for one in folder.sessions()}
    found = []
    for one in pending(folder):
        sent = letters(folder.path(one.session_id).parent)
        mine = [letter for letter in sent if letter.shown and letter.shown == one.asked.shown]
        found.append(Open(one, titles.get(one.session_id, ""), mine[0] if mine else None))
    return found


def _lines(one: Open, paint: Paint, width: int) -> list[str]:
    from bridle.cli.render import call_line, one_line

    asked = one.pending.asked
    title = cut(plain(one.title), max(10, width - len(one.handle) - 2))
    lines = [
        f"{paint.cyan(plain(one.handle))}  {title}",
        f"  {call_line(asked.call, paint, width - 2)}",
    ]
    why = f"why: {one_line(asked.reason or 'it always asks')}"
    lines.append(f"  {paint.dim(cut(why, width - 2))}")
    if asked.cwd:
        lines.append(f"  {paint.dim(cut('in:  ' + one_line(asked.cwd), width - 2))}")
    return [*lines, f"  {_state(one, paint)}"]


def _state(one: Open, paint: Paint) -> str:
    """Where the question stands, and what to do about it."""
    if one.sent is not None:
        said = "yes" if one.sent.allowed else "no"
        by = plain(one.sent.by)
        again = f"bridle run --resume {one.pending.session_id}"
        return f"→ {again}  {paint.dim(f'(answered {said} by {by})')}"
    left = one.seconds_left
    if one.pending.expired:
        return paint.red("expired: that counts as a no when the session is taken up again")
    until = f"  {paint.dim(f'(expires in {span(left)})')}" if left else ""
    return f"→ bridle approvals answer {plain(one.handle)} yes{until}"


def span(seconds: float) -> str:
    """A length of time, to one figure."""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return "less than a minute"


def seconds_until(stamp: str) -> float | None:
    """How long until a time of the log; None where it is no time."""
    from datetime import UTC, datetime

    try:
        return (datetime.fromisoformat(stamp) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None


def _named(one: Open) -> dict[str, Any]:
    import msgspec

    asked: dict[str, Any] = msgspec.to_builtins(one.pending.asked, enc_hook=str)
    asked.pop("type", None)
    return {
        "id": one.handle,
        "session": one.pending.session_id,
        "title": one.title,
        "seq": one.pending.seq,
        **asked,
        "expired": one.pending.expired,
        "answered": None if one.sent is None else one.sent.allowed,
    }


@click.command("answer")
@click.argument("name", metavar="ID-OR-CALL")
@click.argument("said", metavar="[yes|no]", required=False, type=click.Choice(("yes", "no")))
@click.option(
    "--scope",
    type=click.Choice(("once", "session")),
    help="How long a yes holds. Default: once.",
)
@click.option("--word", metavar="TEXT", help="A word to the model, such as what to do instead.")
@click.option("--by", metavar="NAME", help="Who answers. Default: your login name.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def answer(name: str, said: str | None, as_json: bool, **how: str | None) -> None:
    """Answer the question of a session (ID), of a call, or of both (ID/CALL).

    The whole question is shown first. Without yes or no it is asked for, at a terminal. The answer
    counts for exactly what was shown; the first answer wins.
    """
    from bridle.cli.find import session_folder

    folder = session_folder()
    every = waiting(folder)
    one = chosen(every, name)
    _refuse_late(one)
    _show(one)
    given = _answer(said, how["scope"], how["word"] or "")
    holder = _send(folder, one, given, how["by"])
    session_id = one.pending.session_id
    more = sum(o.pending.session_id == session_id and o.sent is None for o in every) - 1
    if as_json:
        word = {"allowed": given.allowed, "scope": given.scope, "word": given.word}
        tell_json({"id": one.handle, "session": session_id, **word, "holder": holder, "left": more})
        return
    _tell(given.allowed, session_id, holder, more)


def _tell(allowed: bool, session_id: str, holder: str, more: int) -> None:
    said = "yes" if allowed else "no"
    left = [f"{more} more of this session: bridle approvals list"] if more else []
    if holder:
        tell(f"answered {said}: {holder} takes it", *left)
    else:
        again = f"bridle run --resume {session_id}   goes on with the turn"
        tell(f"answered {said}; nobody holds the session now, so the answer waits", *left, again)


def chosen(every: list[Open], name: str) -> Open:
    """The question of that name. Raise a usage error where there is none, or more than one."""
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
    open_ones = [one for one in found if one.sent is None] or found
    if len(open_ones) > 1:
        some = ", ".join(one.handle for one in open_ones[:4])
        raise click.UsageError(
            f"{len(open_ones)} questions wait under {name!r}\nName one of {some}."
        )
    return open_ones[0]


def _begins(session_id: str, start: str) -> bool:
    from bridle.cli.find import last_part

    return session_id.startswith(start) or last_part(session_id).startswith(start)


def _refuse_late(one: Open) -> None:
    from bridle.errors import UnknownApproval

    if one.sent is not None:
        said = "yes" if one.sent.allowed else "no"
        raise UnknownApproval(
            f"it was answered {said} by {one.sent.by} already, and the first answer counts",
            hint=f"`bridle run --resume {one.pending.session_id}` goes on with the turn.",
        )
    if one.pending.expired:
        raise UnknownApproval(
            "the question has expired, which counts as a no",
            hint=f"`bridle run --resume {one.pending.session_id}` goes on with the turn.",
        )


def _show(one: Open) -> None:
    """The whole question, on standard error: standard output has what came of it."""
    from bridle.cli.asking import current
    from bridle.cli.question import question

    paint, width = paint_for(sys.stderr), width_of(sys.stderr)
    asked = one.pending.asked
    click.echo(question(asked, paint, width, current(asked)), err=True)


def _answer(said: str | None, scope: str | None, word: str) -> "Answer":
    from bridle.cli.question import CHOICES, to_answer
    from bridle.promises.session import Answer

    if said is not None:
        if said == "no" and scope == "session":
            raise click.UsageError("a no is for this call; --scope belongs to a yes")
        return Answer(said == "yes", scope or "once", word)  # type: ignore[arg-type]  # click has checked it
    if not (sys.stdin and sys.stdin.isatty()):
        raise click.UsageError("there is no answer\nSay yes or no: nobody is here to be asked.")
    click.echo(f"  {CHOICES}\n  [y/a/N] ", nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        raise click.Abort
    return to_answer(line)


def _send(folder: "SessionFolder", one: Open, given: "Answer", by: str | None) -> str:
    """Post it; who holds the session, if anybody does."""
    from bridle.cli.holding import holder_of
    from bridle.cli.posting import deliver, new_letter
    from bridle.cli.words import person
    from bridle.promises.store import Letter

    asked, session_id = one.pending.asked, one.pending.session_id
    letter = Letter(
        new_letter(),
        "answer",
        by or person(),
        call_id=asked.call.id,
        shown=asked.shown,
        allowed=given.allowed,
        scope=given.scope,
        word=given.word,
    )
    holder = holder_of(folder.path(session_id))
    deliver(folder, session_id, letter)
    return holder
