"""Approval requests and their answers, grants, and the mode."""

from typing import Literal

from msgspec import Struct, field

from bridle.events.base import Recorded
from bridle.messages import ToolCall


class ApprovalAsked(Recorded, frozen=True, tag="approval_asked"):
    """A person has to say whether a call may run. `shown` binds the answer to what was shown.

    `commands` are those that were understood, `hosts` those of them that are no commands but
    machines to be reached, `paths` the files it would touch. `covers` is a class of calls
    (`builds`: tests and builds) that a yes for the session covers in this folder. `proposal` is the
    narrowest rule that would allow it, `times` how often the like was allowed before. Questions of
    one step with the same `group` belong together. `once_only`: it can only be allowed once.
    `sandbox`: its level. `network`: the command needs the network, which the sandbox does not have,
    and gets it if the call is allowed.
    """

    call: ToolCall
    shown: str
    reason: str = ""
    rule: str = ""
    cwd: str = ""
    expires: str = ""
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    covers: str = ""
    proposal: str = ""
    times: int = 0
    group: str = ""
    once_only: bool = field(default=False, name="lasting")
    sandbox: str = ""
    hosts: tuple[str, ...] = ()
    network: bool = False


class ApprovalAnswered(Recorded, frozen=True, tag="approval_answered"):
    """The first answer to that question, which is known by its `shown`: call ids may repeat.

    `cwd` is the folder of which it was asked: a yes for one folder is none for another. `rule` is
    the one that was made of a yes; `until` is when what the yes grants ends: a yes for once grants
    nothing and has none.
    """

    call_id: str
    allowed: bool
    by: str = "me"
    scope: Literal["once", "session", "rule"] = "once"
    word: str = ""
    shown: str = ""
    letter: str = ""
    cwd: str = ""
    rule: str = ""
    until: str = ""


class Grant(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A yes for the session: `what` it covers, in words, and the `rule` that was made of it."""

    id: str
    what: str = ""
    since: str = ""
    until: str = ""
    by: str = "me"
    cwd: str = ""
    rule: str = ""


class GrantRevoked(Recorded, frozen=True, tag="grant_revoked"):
    """A yes for the session was taken back; without a `grant`, all of them."""

    grant: str = ""
    by: str = "me"
    letter: str = ""


class ModeChanged(Recorded, frozen=True, tag="mode"):
    """From here on the session has this mode: plan, ask, edits or auto."""

    mode: str
    by: str = "me"
    reason: str = ""


def add_request(pending: dict[str, ApprovalAsked], asked: ApprovalAsked) -> None:
    """Add a request to the open ones, which are kept by what was shown.

    A call that is asked about again, because it would now do something else, has one request.
    """
    if asked.shown not in pending:
        for shown in [key for key, other in pending.items() if other.call.id == asked.call.id]:
            del pending[shown]
    pending[asked.shown] = asked


def take_request(
    pending: dict[str, ApprovalAsked], answer: ApprovalAnswered
) -> ApprovalAsked | None:
    """Remove the request that this answers from the open ones, and return it if there is one."""
    asked = pending.pop(answer.shown, None)
    if asked is None and not answer.shown:  # the oldest logs name only the call
        shown = next((key for key, other in pending.items() if other.call.id == answer.call_id), "")
        asked = pending.pop(shown, None)
    return asked
