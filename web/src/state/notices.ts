// Folds of what happened to the session as a whole, each said in one sentence.

import { sentence } from "../text/words.ts";
import { type Draft, alive } from "./draft.ts";
import type { LogRecord, NoticeItem } from "./model.ts";
import { type Fields, beginning, count, fields, list, words } from "./reading.ts";

type Told = Partial<Pick<NoticeItem, "tone" | "hint" | "sessionId">>;

export function notice(draft: Draft, record: LogRecord, what: NoticeItem["what"], text: string, told: Told = {}): void {
  const common = draft.common("notice", record.seq, record.timestamp);
  draft.add({ ...common, kind: "notice", what, text, tone: "quiet", hint: "", sessionId: "", ...told });
  if (what === "turn_end" || what === "trace") return;
  draft.mark({ seq: record.seq, at: record.timestamp, kind: "notice", label: beginning(text) });
}

const ENDS: Readonly<Record<string, string>> = {
  failed: "The turn failed",
  timeout: "The turn reached its time limit",
  interrupted: "The turn was stopped",
  budget: "The turn reached a limit",
  stuck: "The turn repeated itself and was ended",
  max_tokens: "The answer is not complete",
};

/** Details of an end that say it better alone. */
const DETAILS: Readonly<Record<string, string>> = {
  "the turn was interrupted": "The turn was stopped.",
  "the process that ran the turn ended before the turn did": "The server restarted in the middle of this turn.",
};

export function endNotice(draft: Draft, record: LogRecord): void {
  const reason = words(record.data["reason"]);
  if (reason === "done" || reason === "parked") return;
  const detail = words(record.data["detail"]);
  const end = ENDS[reason] ?? "The turn ended";
  const text = Object.hasOwn(DETAILS, detail) ? DETAILS[detail]! : detail ? sentence(`${end}: ${detail}`) : `${end}.`;
  const tone = reason === "interrupted" ? "info" : reason === "failed" ? "bad" : "warn";
  const hint = words(record.data["hint"]);
  const place = draft.items.length - 1;
  const last = draft.items[place];
  if (reason === "max_tokens" && last?.kind === "notice" && last.what === "stop") {
    draft.items[place] = { ...last, what: "turn_end", text, tone, hint }; // two notices would say the same
  } else {
    notice(draft, record, "turn_end", text, { tone, hint });
  }
}

const STOPS: Readonly<Record<string, string>> = {
  max_tokens: "The reply was cut off at its length limit.",
  refusal: "The model refused to continue.",
};

export function stopNotice(draft: Draft, record: LogRecord): void {
  const reason = words(record.data["stopReason"]);
  const text = STOPS[reason];
  const hint = reason === "refusal" ? words(record.data["stopDetail"]) : ""; // of a length it is only the vendor's code
  if (text) notice(draft, record, "stop", text, { tone: "warn", hint });
}

export function rewound(draft: Draft, record: LogRecord): void {
  const to = count(record.data["to"]);
  draft.rewinds.push({ seq: record.seq, to });
  draft.items = draft.items.map((item) => {
    const gone = !alive(item.seq, record.seq, draft.rewinds);
    return item.gone === gone ? item : { ...item, gone };
  });
  draft.queued = draft.queued.filter((one) => one.seq <= to);
  notice(draft, record, "rewind", `The conversation was rewound to record ${to}${by(record)}.`, {
    tone: "info",
    hint: "Changes to files stay.",
  });
}

export function compacted(draft: Draft, record: LogRecord): void {
  const data = record.data;
  const before = count(data["before"]);
  const after = count(data["after"]);
  const how = data["summary"] === true ? "summarised" : "shortened";
  const sizes = before ? `: about ${thousands(before)} tokens became ${thousands(after)}` : "";
  notice(draft, record, "compaction", `Earlier parts were ${how} for the model${sizes}.`, {
    hint: "Everything stays here and in the log.",
  });
  draft.meter = { ...draft.meter, contextTokens: after || draft.meter.contextTokens };
}

function thousands(tokens: number): string {
  return tokens < 1000 ? String(tokens) : `${Math.round(tokens / 1000)}k`;
}

export function forked(draft: Draft, record: LogRecord): void {
  const at = count(record.data["at"]);
  for (const turn of draft.turns.keys()) draft.changeTurn(turn, { inherited: true });
  draft.queued = [];
  draft.meter = { ...draft.meter, tokens: 0, cost: 0, unpriced: 0 }; // what was spent before was spent by the other session
  const sessionId = words(record.data["sessionId"]);
  notice(draft, record, "fork", `Forked here from another session, at its record ${at}.`, { tone: "info", sessionId });
}

export function undone(draft: Draft, record: LogRecord): void {
  const turn = count(record.data["turn"]);
  const files = list(record.data["files"]).length;
  draft.changeTurn(turn, { undone: true });
  notice(draft, record, "undo", `Turn ${turn} was undone${by(record)}: ${files} ${files === 1 ? "file was" : "files were"} restored.`, { tone: "info" });
}

export function moded(draft: Draft, record: LogRecord): void {
  const mode = words(record.data["mode"]);
  draft.mode = mode;
  const why = words(record.data["reason"]);
  notice(draft, record, "mode", `Mode ${mode}${why ? `: ${why}` : by(record)}.`);
}

export function began(draft: Draft, record: LogRecord): void {
  draft.model = words(record.data["model"]) || draft.model;
  if (record.data["resumed"] !== true) return;
  const model = words(record.data["model"]);
  notice(draft, record, "resumed", `Continued${model ? ` with ${model}` : ""}.`);
}

export function repaired(draft: Draft, record: LogRecord): void {
  const broken = list(record.data["broken"]).length;
  const torn = count(record.data["torn"]);
  const found = [broken ? `${broken} unreadable ${broken === 1 ? "line" : "lines"} skipped` : "", torn ? `${torn} bytes cut off its end` : ""];
  notice(draft, record, "repair", `The log was found damaged: ${found.filter(Boolean).join(", ") || "nothing was lost"}.`, {
    tone: "warn",
  });
}

/** Only what a person may want to know without looking for it. */
const TOLD: Readonly<Record<string, string>> = {
  fallback: "Continued with another model.",
  shortening: "The conversation is being shortened.",
  reply_limit: "The budget is nearly used up:",
  not_stopped: "The agent did not stop when it was asked to.",
  letter_refused: "A message from another process was refused.",
  unknown_call: "A call's result is not known.",
  stale_resume: "The agent began a new conversation of its own.",
  new_conversation: "The agent began a new conversation of its own.",
  setting_left_out: "A setting was left out of the request.",
};

export function traced(draft: Draft, record: LogRecord): void {
  const kind = words(record.data["kind"]);
  const detail: Fields = fields(record.data["detail"]);
  if (kind === "retry") return retried(draft, record, detail);
  const said = words(detail["message"]) || words(detail["why"]);
  const text = TOLD[kind];
  if (text) notice(draft, record, "trace", said ? `${text} ${said}` : text);
}

/** One notice for all attempts in a row. Once something else follows, it says that it was tried again. */
function retried(draft: Draft, record: LogRecord, detail: Fields): void {
  const why = words(detail["error"]).split(". ", 1)[0]!.replace(/\.$/, "");
  const seconds = count(detail["seconds"]);
  const wait = `Retrying in ${seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds)} s`;
  const attempt = count(detail["attempt"]);
  const begin = why ? `${sentence(why)} ` : "";
  const text = `${begin}${wait}${attempt ? `, attempt ${attempt}` : ""}…`;
  const hint = "Press Stop to give up.";
  const place = draft.retry?.place ?? draft.items.length;
  const before = draft.items[place];
  if (before?.kind === "notice") draft.items[place] = { ...before, text, hint };
  else notice(draft, record, "trace", text, { tone: "warn", hint });
  draft.retry = { place, gaveUp: why ? sentence(why) : "The model did not answer.", after: `${begin}Tried again${attempt ? ` (attempt ${attempt})` : ""}.` };
}

/** What came of a reply that broke off counts no more; the model is asked again. */
export function discarded(draft: Draft, record: LogRecord): void {
  const text = "The reply above broke off and is discarded."; // the notice of the retry says why
  notice(draft, record, "trace", text, { tone: "warn", hint: "The model is asked again." });
}

/** Who did it, where that is not the owner: who reads this may be anybody. */
function by(record: LogRecord): string {
  const who = words(record.data["by"], "me");
  return who === "me" ? "" : ` by ${who}`;
}
