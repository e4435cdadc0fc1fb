// What went wrong with a request, as the server says it (RFC 9457), or as the network did.

import { sentence } from "../text/words.ts";

export class Problem extends Error {
  readonly status: number; // 0: no answer came
  readonly code: string;
  readonly hint: string;
  readonly more: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, detail: string, hint = "", more: Readonly<Record<string, unknown>> = {}) {
    super(detail);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.more = more;
  }
}

/** The answer as a problem; also what is none of ours, such as a proxy's page. */
export async function toProblem(answer: Response): Promise<Problem> {
  const said = await answer.json().catch(() => null);
  const found = typeof said === "object" && said !== null ? (said as Record<string, unknown>) : {};
  const text = (key: string): string => (typeof found[key] === "string" ? (found[key] as string) : "");
  const detail = text("detail") || text("title") || `The server answered ${answer.status}.`;
  return new Problem(answer.status, text("code"), detail, text("hint"), found);
}

export function noAnswer(): Problem {
  return new Problem(0, "no_answer", "Can't reach the server.", "Nothing that you sent is lost: the page keeps trying.");
}

/** What happened and what can be done about it, for a person. */
export function explain(error: unknown): string {
  if (error instanceof Problem) return [error.message, error.hint].filter(Boolean).map(sentence).join(" ");
  return sentence(error instanceof Error ? error.message : String(error));
}
