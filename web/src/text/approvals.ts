// The title and the choices of an approval request. Pure; the page's twin of presentation/approvals.py:
// tests/presentation/test_same_sentences.py compares the two.

import type { SomeCall } from "./calls.ts";
import { oneLine } from "./neutral.ts";

export interface SomeRequest {
  readonly covers?: string;
  readonly proposal?: string;
  readonly lasting?: boolean; // it can only be allowed once
}

const TITLES: Readonly<Record<string, string>> = {
  shell: "Run this command?",
  exit_plan_mode: "Go ahead with this plan?",
  ask_user: "A question for you",
};
const CHANGING = new Set(["edit", "write"]); // tools that change the file they name
const READING = new Set(["list", "read"]); // ... and that read it
const CLASSES: Readonly<Record<string, string>> = { builds: "tests and builds" };

/** What is asked, in one line: `Run this command?`, `Allow edit to basket.py?`. */
export function approvalTitle({ name, arguments: given }: SomeCall): string {
  if (Object.hasOwn(TITLES, name)) return TITLES[name]!;
  const link = CHANGING.has(name) ? "to" : READING.has(name) ? "of" : "";
  const path = given["path"];
  return `Allow ${oneLine(name, 60)}${link && typeof path === "string" ? ` ${link} ${oneLine(path, 60)}` : ""}?`;
}

/** The labels by the key that does the same: what cannot be answered is left out. */
export function approvalChoices(asked: SomeRequest): Readonly<Record<string, string>> {
  return {
    y: "Allow once",
    ...(asked.lasting ? {} : { s: sessionLabel(asked.covers) }),
    ...(asked.proposal && !asked.lasting ? { r: "Always allow…" } : {}),
    n: "Deny",
    w: "Deny and say why…",
  };
}

/** The labels for a plan. */
export const PLAN_CHOICES = {
  y: "Yes, ask before each change",
  c: "Yes, with changes…",
  n: "Keep planning",
  w: "Keep planning and say why…",
} as const;

export const LEAVE_UNANSWERED = "Leave unanswered";
export const SAVE_RULE = "Allow and save the rule";

/** What an answer for the session allows: this call again, or every call of its class in the folder. */
function sessionLabel(covers: string | undefined): string {
  if (!covers) return "Allow for this session";
  return `Allow for this session: ${CLASSES[covers] ?? oneLine(covers, 60)} in this folder`;
}
