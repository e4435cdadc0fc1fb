// What can be said to a question: a button, and the key that does the same.

import type { ComponentChildren, JSX } from "preact";
import type { AnswerWords, Approval } from "../state/model.ts";
import type { Box } from "./armed.ts";

export type Say = (words: AnswerWords) => void;

export interface AnswerProps {
  readonly approval: Approval;
  readonly say: Say;
  readonly blocked: boolean;
  readonly box: Box; // the question's element: its keys count while it has the focus
}

interface ChoiceProps {
  readonly keyName: string;
  readonly main?: boolean;
  readonly bad?: boolean;
  readonly blocked: boolean;
  readonly act: () => void;
  readonly children: ComponentChildren;
}

/** A button with the key that does the same. */
export function Choice({ keyName, main = false, bad = false, blocked, act, children }: ChoiceProps): JSX.Element {
  const tone = main ? "choice choice-main" : bad ? "choice choice-bad" : "choice";
  return (
    <button type="button" class={tone} disabled={blocked} onClick={act} aria-keyshortcuts={keyName || undefined}>
      {children}
      {keyName && <kbd aria-hidden="true">{keyName}</kbd>}
    </button>
  );
}
