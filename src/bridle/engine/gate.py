"""The one gate before every effect: rules, the tool's own word, and a person where it needs one.

`decide` (policy.py) is pure; here the facts are found and the question is put. Who the person is,
and how the question reaches them, is handed in.
"""

from collections.abc import Awaitable, Callable, Set
from hashlib import blake2b

import msgspec

from bridle.engine.redact import MARK, Redactor, holds_mark
from bridle.messages import ToolCall
from bridle.policy import Decision, Facts, Mode, Rule, decide
from bridle.promises.session import Answer
from bridle.promises.tool import Tool

Ask = Callable[[ToolCall, Decision], Awaitable[Answer]]


class Parked(Exception):
    """A question was put and nobody is here to answer it: the turn stops, and goes on later."""


_MARKED = (
    f"the arguments hold {MARK}, which stands for a secret that was taken out: the tool would work "
    "with the marker in its place. Leave it out, or name the file or variable that holds it"
)
_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


class Gate:
    """Judges each call (`decide`), and has an `ask` settled by a person (`ask`)."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        mode: Callable[[], Mode],
        ask: Ask,
        redactor: Redactor | None = None,
        granted: Set[str] = frozenset(),
    ) -> None:
        self.redactor = redactor
        self._rules = rules
        self._mode = mode
        self._ask = ask
        self._granted = granted  # calls that the person allowed for this session

    def decide(self, call: ToolCall, tool: Tool) -> Decision:
        """Allow, ask or deny: what needs nobody to be asked is settled here."""
        if self.redactor is not None and holds_mark(call.arguments):
            return Decision("deny", _MARKED, "redaction")
        return decide(call, facts_of(call, tool), self._rules, self._mode())

    async def ask(self, call: ToolCall, decision: Decision, cwd: str = "") -> Decision:
        """Have a person turn an ask into an allow or a deny. `cwd` is where the call would run."""
        if grant_of(call, cwd) in self._granted:
            return Decision("allow", "allowed for this session", decision.rule)
        answer = await self._ask(call, decision)
        if answer.allowed is not True:  # a word that only looks like a yes is none
            reason = f"the answer was no: {answer.word}" if answer.word else "the answer was no"
            return Decision("deny", reason, decision.rule)
        return Decision("allow", "allowed by a person", decision.rule)


def facts_of(call: ToolCall, tool: Tool) -> Facts:
    """What is known of a call."""
    arguments = call.arguments
    subject = arguments.get("command") or arguments.get("path") or ""
    return Facts(tool.policy, subject if isinstance(subject, str) else str(subject))


def fingerprint(call: ToolCall, *bound: str) -> str:
    """The hash of exactly this call and what it is bound to; what an answer has to bring back."""
    said = [call.id, call.name, call.arguments, bound]
    try:
        words = _encode(said)
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8, but a spelling of its own
        words = repr(said).encode("utf-8", "backslashreplace")
    return blake2b(words, digest_size=16).hexdigest()


def grant_of(call: ToolCall, cwd: str) -> str:
    """What "for this session" covers: the same tool with the same arguments in the same folder."""
    return fingerprint(ToolCall("", call.name, call.arguments), cwd)
