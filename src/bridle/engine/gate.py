"""The one gate before every effect: rules, the tool's own word, and a person where it needs one.

`decide` (policy.py) is pure; here the facts are found and the question is put. Who the person is,
and how the question reaches them, is handed in.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from msgspec.structs import replace

from bridle.engine.engine_config import EngineConfig
from bridle.engine.facts import facts_of, vouched
from bridle.engine.grants import is_over, rules_of
from bridle.engine.question import Judged
from bridle.engine.redaction import MARK, holds_mark
from bridle.engine.ruled_reads import with_ruled_reads
from bridle.engine.sweeps import SWEEPS, swept
from bridle.engine.turn_context import Parked as Parked
from bridle.events import Grant
from bridle.messages import ToolCall
from bridle.policy import Act, Decision, Mode, Rule, decide, is_named
from bridle.promises.session import Answer
from bridle.promises.tool import Access, Tool

Ask = Callable[[Judged], Awaitable[Answer]]


_MARKED = (
    f"the arguments hold {MARK}, which stands for a secret that was taken out: the tool would work "
    "with the marker in its place. Leave it out, or name the file or variable that holds it"
)


class Gate:
    """Judges each call (`judge`), and has an `ask` settled by a person (`ask`)."""

    __slots__ = ("_ask", "_grants", "_parts", "_rules", "mode", "redactor")

    def __init__(
        self, parts: EngineConfig, mode: Callable[[], Mode], ask: Ask, grants: Mapping[str, Grant]
    ) -> None:
        self.redactor = parts.redactor
        self.mode = mode
        self._parts = parts
        self._rules = parts.rules
        self._ask = ask
        self._grants = grants  # what the person allowed for this session, as it grows

    def judge(self, call: ToolCall, tool: Tool, cwd: str = "", *, theirs: bool = False) -> Judged:
        """Allow, ask or deny: what needs nobody to be asked is settled here.

        `cwd` is where its words are read; without it, the root of the workspace. `theirs`: another
        agent does it by its own means, and nothing of ours confines it.
        """
        parts = self._parts
        level = "" if theirs else parts.sandbox
        facts = facts_of(call, tool, parts.ground, cwd=cwd, sandboxed=level)
        if self.redactor is not None and holds_mark(call.arguments):
            decision = Decision("deny", _MARKED, "redaction")
        else:
            rules = self._rules if not self._grants else (*self._rules, *self._granted())
            facts = vouched(facts, rules)
            if rules and tool.policy.runs:
                facts = with_ruled_reads(facts, parts.ground, rules, cwd)
            if theirs and call.name in SWEEPS:
                facts = swept(call, facts, parts.ground, rules)
            decision = decide(call, facts, rules, self.mode())
            if parts.parent is not None:
                decision = parts.parent.bound(decision, partial(decide, call, facts, rules))
        return Judged(call, tool, facts, decision, cwd)

    def access(self, judged: Judged) -> Access:
        """The guarded files that this command may use: a person allowed it, or a rule names them.

        A guard is answered by a person alone. So where there is none, no file that the command
        names needed their permission, and none is opened: `ls .env` shows a name.
        """
        facts, rules = judged.facts, self._rules
        acts = facts.acts if facts.guard else ()
        reads = {act.subject for act in acts if act.is_path and "read" in act.names}
        writes = {act.subject for act in acts if act.is_path and "write" in act.names}

        def may_read(path: str) -> bool:
            return path in reads or is_named(Act(("read",), path, is_path=True), rules)

        def may_write(path: str) -> bool:
            if path in writes or is_named(Act(("write",), path, is_path=True), rules):
                return True
            from bridle.workspace.protected import care_of

            return any(path.startswith(f"{one}/") and care_of(one).writing for one in writes)

        git = any(
            not act.is_path and act.does != "reads" and act.subject.startswith("git ")
            for act in facts.acts
        )
        told = judged.decision.person or judged.decision.network
        return Access(may_read, may_write, "" if not git else "any" if told else "known")

    def _granted(self) -> tuple[Rule, ...]:
        parts = self._parts
        return rules_of(self._grants, parts.workspace.root, parts.ask_grant_seconds)

    def placed(self, judged: Judged) -> Judged:
        """The call with the folder that an answer to it is bound to."""
        return judged if judged.cwd else replace(judged, cwd=self._parts.workspace.root)

    def is_granted(self, judged: Judged) -> bool:
        """Did a person allow it for the session, and is that still so?"""
        if not self._grants:
            return False
        found = (self._grants.get(one) for one in judged.grants)
        seconds = self._parts.ask_grant_seconds
        return any(one is not None and not is_over(one, seconds) for one in found)

    async def ask(self, judged: Judged) -> Decision:
        """Have a person turn an ask into an allow or a deny."""
        decision = judged.decision
        if self.is_granted(judged):
            said = "allowed for this session"
            return Decision("allow", said, decision.rule, network=decision.network, person=True)
        answer = await self._ask(judged)
        if answer.allowed is not True:  # a word that only looks like a yes is none
            reason = f"the answer was no: {answer.word}" if answer.word else "the answer was no"
            return Decision("deny", reason, decision.rule)
        said, rule = "allowed by a person", decision.rule
        return Decision(
            "allow", said, rule, word=answer.word, network=decision.network, person=True
        )
