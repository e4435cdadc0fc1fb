// Allowing by a rule: shows which past calls the rule would have covered. An admin can change it.

import type { JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Actions, Approval } from "../state/model.ts";
import { SAVE_RULE } from "../text/approvals.ts";
import { oneLine } from "../text/neutral.ts";
import { counted } from "../text/words.ts";
import type { Say } from "./choice.tsx";

interface RuleFormProps {
  readonly approval: Approval;
  readonly actions: Actions;
  readonly own: boolean; // may it be another one than the one that is proposed?
  readonly blocked: boolean;
  readonly say: Say;
  readonly back: () => void;
}

const PAUSE = 300; // milliseconds without typing before the preview is asked for
const LISTED = 6;

type Preview = readonly string[] | null | "asking";

/** The rule, its preview, and the button that makes it. */
export function RuleForm({ approval, actions, own, blocked, say, back }: RuleFormProps): JSX.Element {
  const [rule, setRule] = useState(approval.asked.proposal ?? "");
  const covered = usePreview(approval.sessionId, rule, actions);
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []); // at once: the next key is a letter of the rule
  const send = () => {
    if (!blocked && rule.trim()) say({ allowed: true, scope: "rule", rule: rule.trim() });
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.isComposing) send();
    if (event.key === "Escape") {
      event.stopPropagation();
      back();
    }
  };
  return (
    <div class="word">
      <label for={id}>Rule for this folder, from now on</label>
      <input
        id={id} ref={field} class="rule-field" value={rule} spellcheck={false} autocomplete="off" readOnly={!own}
        onInput={(event) => setRule(event.currentTarget.value)} onKeyDown={pressed}
      />
      {!own && <p class="note">To change the rule you need the role admin.</p>}
      <Covered covered={covered} />
      <div class="answers">
        <button type="button" class="choice choice-main" disabled={blocked || !rule.trim()} onClick={send}>{SAVE_RULE}</button>
        <button type="button" class="choice" data-grows onClick={back}>Back</button>
      </div>
    </div>
  );
}

function usePreview(sessionId: string, rule: string, actions: Actions): Preview {
  const [covered, setCovered] = useState<Preview>("asking");
  useEffect(() => {
    let wanted = true;
    setCovered("asking");
    const timer = setTimeout(() => {
      void actions.previewRule(sessionId, rule.trim()).then((calls) => wanted && setCovered(calls));
    }, PAUSE);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [sessionId, rule]);
  return covered;
}

function Covered({ covered }: { covered: Preview }): JSX.Element {
  if (covered === "asking") return <p class="note">Looking at past calls…</p>;
  if (covered === null) return <p class="note">This is not a valid rule, or its effect cannot be shown.</p>;
  if (covered.length === 0) return <p class="note">It would have covered no other call of this session.</p>;
  return (
    <div class="covered">
      <p class="note">It would have covered {counted(covered.length, "past call")}:</p>
      <ul>
        {covered.slice(0, LISTED).map((call, at) => <li key={at}><code>{oneLine(call, 160)}</code></li>)}
        {covered.length > LISTED && <li>and {covered.length - LISTED} more</li>}
      </ul>
    </div>
  );
}
