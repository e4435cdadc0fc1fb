"""A call that was judged, and what a person is shown of it where they have to be asked. A value."""

from msgspec import Struct

from bridle.engine.fingerprint import fingerprint
from bridle.engine.grants import class_of, confinement, grant_of
from bridle.engine.proposal import proposal
from bridle.events import ApprovalAsked
from bridle.messages import ToolCall
from bridle.policy import Decision, Facts
from bridle.promises.tool import Tool

NONCE = 16  # characters at the beginning of what is shown that are chance


class Judged(Struct, frozen=True, gc=False):
    """A call, its tool, what is known of it and what the gate says. `cwd` is where it would run."""

    call: ToolCall
    tool: Tool
    facts: Facts
    decision: Decision
    cwd: str = ""

    @property
    def reads(self) -> bool:
        """Does it change nothing? A command that was understood to the end may be known to."""
        if self.tool.policy.read_only or self.tool.policy.delegates:
            return self.tool.policy.read_only
        facts = self.facts
        if not facts.acts or facts.opaque or facts.floor:
            return False
        return all(act.does == "reads" for act in facts.acts)

    @property
    def moves(self) -> bool:
        """Would it leave the shell standing in another folder?"""
        words = (act.subject.partition(" ")[0] for act in self.facts.acts if not act.is_path)
        return any(word in ("cd", "pushd", "popd") for word in words)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that were understood."""
        if not self.tool.policy.runs:
            return ()
        return tuple(dict.fromkeys(act.subject for act in self.facts.acts if not act.is_path))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Those of the commands that are machines to be reached, and nothing that would be run."""
        acts = [act for act in self.facts.acts if not act.is_path]
        run = {act.subject for act in acts if act.names != ("fetch",)}
        return tuple(one for one in self.commands if one not in run)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it would touch."""
        return tuple(dict.fromkeys(act.subject for act in self.facts.acts if act.is_path))

    @property
    def kin(self) -> tuple[str, ...]:
        """What questions have in common that belong together."""
        acts = self.facts.acts
        if not self.decision.lasting and acts and all(act.does == "edits" for act in acts):
            return ("edits",)
        return (self.call.name, self.decision.covers or self.decision.reason)

    @property
    def grants(self) -> tuple[str, ...]:
        """The grants of which each would cover it."""
        if self.decision.lasting:
            return ()
        covers = self.decision.covers
        sandbox = confinement(self.facts.sandbox, network=self.decision.network)
        mine = grant_of(self.call, self.cwd, sandbox, *self.commands, *self.paths)
        return (mine, class_of(covers, self.cwd, sandbox)) if covers else (mine,)

    def shown(self, session_id: str, nonce: str) -> str:
        """What binds an answer to this call, to what it was said to do, and to this question.

        The nonce stands before it, because some servers give the calls of every step the same ids;
        who knows it can say whether it is still the same question.
        """
        decision, facts = self.decision, self.facts
        said = (decision.reason, decision.rule, decision.covers, "lasting" * decision.lasting)
        care: tuple[str, ...] = (facts.guard, facts.opaque, facts.sandbox)
        if decision.network:
            care = (*care, "network")
        does = ("|", *self.commands, "|", *self.paths)
        return nonce + fingerprint(self.call, session_id, self.cwd, nonce, *said, *care, *does)

    def is_shown(self, session_id: str, shown: str) -> bool:
        """Is it what that question was about?"""
        return len(shown) > NONCE and shown == self.shown(session_id, shown[:NONCE])

    def asked(self, shown: str, expires: str, group: str) -> ApprovalAsked:
        """The question as it is recorded; how often the like was allowed is not known here."""
        decision = self.decision
        return ApprovalAsked(
            self.call,
            shown,
            decision.reason,
            decision.rule,
            self.cwd,
            expires,
            self.commands,
            self.paths,
            decision.covers,
            proposal(self.call, self.facts, decision),
            group=group,
            lasting=decision.lasting,
            sandbox=self.facts.sandbox,
            hosts=self.hosts,
            network=decision.network,
        )
