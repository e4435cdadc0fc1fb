// A plan to agree to.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useKeys } from "./armed.ts";
import { Choice, type AnswerProps } from "./choice.tsx";
import { More } from "./facts.tsx";
import { Whole } from "./markdown.tsx";
import { PLAN_CHOICES } from "../text/approvals.ts";
import { WordForm } from "./word.tsx";

type Form = "" | "go" | "stay";

/** The plan whole, as the Markdown that it is, and what can be said to it. */
export function Plan({ approval, say, blocked, box }: AnswerProps): JSX.Element {
  const [form, setForm] = useState<Form>("");
  const agree = () => say({ allowed: true });
  const free = !blocked && form === "";
  const back = () => {
    setForm("");
    box.current?.focus({ preventScroll: true });
  };
  useKeys(box, {
    y: free ? agree : undefined,
    c: free ? () => setForm("go") : undefined,
    n: free ? () => say({ allowed: false }) : undefined,
    w: free ? () => setForm("stay") : undefined,
    escape: form ? back : undefined,
  });
  return (
    <>
      <div class="plan"><Whole text={String(approval.asked.call.arguments["plan"] ?? "")} /></div>
      <More call={approval.asked.call.arguments} told={["plan"]} />
      {form === "go" && (
        <WordForm label="What to change" button="Yes, with these changes" blocked={blocked} back={back} say={(word) => say({ allowed: true, word })} />
      )}
      {form === "stay" && (
        <WordForm label="What is wrong with it?" button="Keep planning" blocked={blocked} back={back} say={(word) => say({ allowed: false, word })} />
      )}
      {form === "" && (
        <div class="answers">
          <div class="answers-part">
            <Choice keyName="y" main blocked={blocked} act={agree}>{PLAN_CHOICES.y}</Choice>
            <Choice keyName="c" blocked={blocked} act={() => setForm("go")}>{PLAN_CHOICES.c}</Choice>
          </div>
          <div class="answers-part">
            <Choice keyName="w" bad blocked={blocked} act={() => setForm("stay")}>{PLAN_CHOICES.w}</Choice>
            <Choice keyName="n" bad blocked={blocked} act={() => say({ allowed: false })}>{PLAN_CHOICES.n}</Choice>
          </div>
        </div>
      )}
    </>
  );
}
