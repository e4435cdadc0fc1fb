// A question before a call: what, why, exactly what would happen, and what can be said to it.
// The first answer counts, whoever gives it; afterwards the card says whose it was.

import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Approval, ApprovalCardProps } from "../state/model.ts";
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

/** The question, or who answered it. */
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
      {role === "watch" && <p class="note">Your token may only watch: somebody else has to answer.</p>}
    </Frame>
  );
}

const HEADS: Record<string, string> = { exit_plan_mode: "Carry out this plan?", ask_user: "A question for you" };

interface FrameProps {
  readonly approval: Approval;
  readonly box: { current: HTMLElement | null };
  readonly compact: boolean;
  readonly children: ComponentChildren;
}

function Frame({ approval, box, compact, children }: FrameProps): JSX.Element {
  const name = oneLine(approval.asked.call.name, 60);
  const head = HEADS[name] ?? `${name}: may this run?`;
  return (
    <section class="question" ref={box} tabIndex={0} aria-label={`Question. ${head}`} data-question={approval.callId}>
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
  const canSession = !asked.lasting;
  const canRule = Boolean(asked.proposal) && !asked.lasting && (role === "drive" || role === "admin");
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
        <WordForm label="No, and what to do instead" button="No, with these words" blocked={blocked} back={back} say={(word) => say({ allowed: false, word })} />
      )}
      {form === "" && (
        <div class="answers">
          <div class="answers-part">
            <Choice keyName="y" main blocked={blocked} act={once}>Allow once</Choice>
            {canSession && <Choice keyName="s" blocked={blocked} act={session}>{sessionLabel(asked.covers)}</Choice>}
            {canRule && <Choice keyName="r" blocked={blocked} act={() => setForm("rule")}>As a rule…</Choice>}
          </div>
          <div class="answers-part">
            <Choice keyName="n" bad blocked={blocked} act={no}>No</Choice>
            <Choice keyName="w" bad blocked={blocked} act={() => setForm("word")}>No, with a word…</Choice>
          </div>
        </div>
      )}
    </>
  );
}

const CLASSES: Record<string, string> = { builds: "tests and builds" };

/** What a yes for the session allows: this call again, or every call of its class in the folder. */
function sessionLabel(covers: string | undefined): string {
  return covers ? `Allow ${CLASSES[covers] ?? oneLine(covers, 60)} in this folder for this session` : "Allow for this session";
}

const SCOPES = { once: "", session: ", for this session", rule: ", as a rule" } as const;

const DEEDS: Record<string, readonly [string, string]> = {
  exit_plan_mode: ["Agreed", "Sent back"],
  ask_user: ["Answered", "Left unanswered"],
};

/** Who has answered, and what. */
export function Answered({ approval }: { approval: Approval }): JSX.Element | null {
  const { state, by, scope, word, rule } = approval;
  const [yes, no] = DEEDS[approval.asked.call.name] ?? ["Allowed", "Refused"];
  const who = byWhom(by);
  const words: Record<string, string> = {
    posted: "An answer is there. It counts once the session is taken up.",
    allowed: `${yes} by ${who}${SCOPES[scope]}`,
    denied: `${no} by ${who}`,
    expired: "Nobody answered in time: it counts as no",
    gone: "Nobody has to answer this any more",
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
