// A question of the model's own (`ask_user`), with its options.

import type { JSX } from "preact";
import { useKeys } from "./armed.ts";
import { Exact } from "./bytes.tsx";
import { Choice, type AnswerProps } from "./choice.tsx";
import { More } from "./facts.tsx";
import { LEAVE_UNANSWERED } from "../text/approvals.ts";
import { WordForm } from "./word.tsx";

/** The question; every option is a button and a number, other words are welcome unless they are not. */
export function Asking({ approval, say, blocked, box }: AnswerProps): JSX.Element {
  const given = approval.asked.call.arguments;
  const options = Array.isArray(given["options"]) ? given["options"].map(String) : [];
  const free = given["free_text"] !== false;
  const choose = (option: string) => say({ allowed: true, word: option });
  const writes = free || options.length === 0;
  const keys = options.map((option, at) => [String(at + 1), blocked ? undefined : () => choose(option)] as const);
  const leave = () => say({ allowed: false });
  useKeys(box, { ...Object.fromEntries(keys), ...(writes ? {} : { n: blocked ? undefined : leave }) }); // an answer may begin with n
  return (
    <>
      <p class="asking"><Exact text={String(given["question"] ?? "")} /></p>
      <More call={given} told={["question", "options", "free_text"]} />
      {options.length > 0 && (
        <div class="options">
          {options.map((option, at) => (
            <Choice key={at} keyName={String(at + 1)} main={at === 0} blocked={blocked} act={() => choose(option)}>
              <Exact text={option} />
            </Choice>
          ))}
        </div>
      )}
      {writes && (
        <WordForm
          label={options.length > 0 ? "Or in other words" : "Your answer"} button="Answer" blocked={blocked}
          focus={false} say={(word) => say({ allowed: true, word })}
        />
      )}
      <div class="answers">
        <Choice keyName={writes ? "" : "n"} bad blocked={blocked} act={leave}>{LEAVE_UNANSWERED}</Choice>
      </div>
    </>
  );
}
