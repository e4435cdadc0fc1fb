// An approval request: what would run, why it needs approval, and the ways to answer.
// The first answer counts, whoever gives it; afterwards the card says whose it was.

import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Approval, ApprovalCardProps } from "../state/model.ts";
import { approvalChoices, approvalTitle } from "../text/approvals.ts";
import { oneLine } from "../text/neutral.ts";
import { useKeys } from "./armed.ts";
import { Choice, type AnswerProps, type Say } from "./choice.tsx";
import { Countdown, left } from "./expiry.tsx";
import { Facts } from "./facts.tsx";
import { Plan } from "./plan.tsx";
import { Asking } from "./asking.tsx";
import { RuleForm } from "./rule.tsx";
import { byWhom } from "./who.ts";
import { WordForm } from "./word.tsx";

type Form = "" | "rule" | "word";

/** The request, or who answered it. */
export function ApprovalCard(props: ApprovalCardProps): JSX.Element {
  const { approval, actions, role, compact = false } = props;
  const [sending, setSending] = useState(false);
  const box = useRef<HTMLElement>(null);
  if (approval.state !== "open") return <Answered approval={approval} />;
  const over = (left(approval.expires) ?? 1) <= 0;
  const blocked = sending || role === "watch" || over;
  const say: Say = (words) => {
    setSending(true);
    void actions.answer(approval, words).then((told) => {
      if (told !== "ok") setSending(false);
    });
  };
  const name = approval.asked.call.name;
  const shared = { approval, say, blocked, box };
  return (
    <Frame approval={approval} box={box} compact={compact}>
      {name === "exit_plan_mode" ? (
        <Plan {...shared} />
      ) : name === "ask_user" ? (
        <Asking {...shared} />
      ) : (
        <Permission {...props} {...shared} />
      )}
      {role === "watch" && <p class="note">Your token can only watch: somebody else has to answer.</p>}
    </Frame>
  );
}

interface FrameProps {
  readonly approval: Approval;
  readonly box: { current: HTMLElement | null };
  readonly compact: boolean;
  readonly children: ComponentChildren;
}

function Frame({ approval, box, compact, children }: FrameProps): JSX.Element {
  const head = approvalTitle(approval.asked.call);
  return (
    <section class="question" ref={box} tabIndex={0} aria-label={`Approval needed: ${head}`} data-question={approval.callId}>
      <header class="question-head">
        <span class="question-mark" aria-hidden="true">?</span>
        <strong>{head}</strong>
        {compact && <span class="question-where">{oneLine(approval.sessionTitle || approval.sessionId, 60)}</span>}
        <Countdown expires={approval.expires} />
      </header>
      {children}
    </section>
  );
}

/** May a call run? */
function Permission(props: ApprovalCardProps & AnswerProps): JSX.Element {
  const { approval, say, blocked, actions, role, compact = false, box } = props;
  const { asked } = approval;
  const [form, setForm] = useState<Form>("");
  const labels = approvalChoices(asked);
  const canSession = "s" in labels;
  const canRule = "r" in labels && (role === "drive" || role === "admin");
  const once = () => say({ allowed: true });
  const session = () => say({ allowed: true, scope: "session" });
  const no = () => say({ allowed: false });
  const free = !blocked && form === "";
  useKeys(box, {
    y: free ? once : undefined,
    s: free && canSession ? session : undefined,
    r: free && canRule ? () => setForm("rule") : undefined,
    n: free ? no : undefined,
    w: free ? () => setForm("word") : undefined,
    escape: form ? () => back() : undefined,
  });
  const back = () => {
    setForm("");
    box.current?.focus({ preventScroll: true });
  };
  return (
    <>
      <Facts approval={approval} compact={compact} />
      {form === "rule" && <RuleForm approval={approval} actions={actions} own={role === "admin"} blocked={blocked} say={say} back={back} />}
      {form === "word" && (
        <WordForm label="What should it do instead?" button="Deny with this message" blocked={blocked} back={back} say={(word) => say({ allowed: false, word })} />
      )}
      {form === "" && (
        <div class="answers">
          <div class="answers-part">
            <Choice keyName="y" main blocked={blocked} act={once}>{labels["y"]}</Choice>
            {canSession && <Choice keyName="s" blocked={blocked} act={session}>{labels["s"]}</Choice>}
            {canRule && <Choice keyName="r" blocked={blocked} act={() => setForm("rule")}>{labels["r"]}</Choice>}
          </div>
          <div class="answers-part">
            <Choice keyName="n" bad blocked={blocked} act={no}>{labels["n"]}</Choice>
            <Choice keyName="w" bad blocked={blocked} act={() => setForm("word")}>{labels["w"]}</Choice>
          </div>
        </div>
      )}
    </>
  );
}

const SCOPES = { once: "", session: " for this session", rule: " with a rule" } as const;

const DEEDS: Record<string, readonly [string, string]> = {
  exit_plan_mode: ["Agreed", "Sent back"],
  ask_user: ["Answered", "Left unanswered"],
};

/** Who has answered, and what. */
export function Answered({ approval }: { approval: Approval }): JSX.Element | null {
  const { state, by, scope, word, rule } = approval;
  const [yes, no] = DEEDS[approval.asked.call.name] ?? ["Allowed", "Denied"];
  const who = byWhom(by);
  const words: Record<string, string> = {
    posted: "Answered. The answer takes effect when the session resumes.",
    allowed: `${yes} by ${who}${SCOPES[scope]}`,
    denied: `${no} by ${who}`,
    expired: "Denied: nobody answered in time",
    gone: "No longer needs an answer",
  };
  const said = words[state];
  if (!said) return null;
  return (
    <p class={`answered answered-${state}`}>
      {said}
      {rule && <code class="rule">{oneLine(rule, 200)}</code>}
      {word && <q>{oneLine(word, 400)}</q>}
    </p>
  );
}
