// Folds of calls: their arguments, the question about them, what they say, and their one result.

import type { Draft } from "./draft.ts";
import type { Approval, AskedRecord, Call, CallStatus, Child, FileChange, LogRecord, Scope } from "./model.ts";
import { type Fields, beginning, count, fields, list, strings, words } from "./reading.ts";
import { media } from "./replies.ts";

const OUTPUT = 100_000; // characters of live output that are kept, the newest
const OPEN: readonly CallStatus[] = ["writing", "ready", "waiting", "running"];

const EMPTY: Call = {
  id: "",
  name: "",
  arguments: {},
  argumentsText: "",
  broken: "",
  status: "writing",
  output: "",
  outputCut: false,
  result: null,
  diff: "",
  approval: null,
  files: [],
  uncovered: [],
  children: [],
  startedAt: "",
  endedAt: "",
};

/** Ids may come again: the newest call of that id, unless it is over. */
function openPlace(draft: Draft, id: string): number | undefined {
  const place = draft.calls.get(id);
  if (place === undefined) return undefined;
  return draft.callAt(place)?.call.result ? undefined : place;
}

function begin(draft: Draft, record: LogRecord, id: string, name: string): number {
  const common = draft.common("call", record.seq, record.timestamp);
  const place = draft.add({ ...common, kind: "call", call: { ...EMPTY, id, name } });
  draft.calls.set(id, place);
  draft.live.add(place);
  draft.mark({ seq: record.seq, at: record.timestamp, kind: "call", label: name });
  return place;
}

function placeOf(draft: Draft, record: LogRecord, id: string, name = "a tool"): number {
  return openPlace(draft, id) ?? begin(draft, record, id, name);
}

export function started(draft: Draft, record: LogRecord): void {
  const place = placeOf(draft, record, words(record.data["callId"]), words(record.data["name"]));
  if (!draft.open.includes(place)) draft.open.push(place);
}

export function argued(draft: Draft, record: LogRecord): void {
  const place = openPlace(draft, words(record.data["callId"]));
  const call = place === undefined ? undefined : draft.callAt(place)?.call;
  if (place === undefined || !call) return;
  draft.changeCall(place, { argumentsText: call.argumentsText + words(record.data["text"]) });
}

/** A call that is whole: of a `ToolCallReady`, of a message, or of a question. */
export function newCall(draft: Draft, record: LogRecord, raw: Fields): number {
  const id = words(raw["id"]);
  const known = draft.calls.get(id);
  const mine = known !== undefined && draft.open.includes(known); // it may have its result already
  const place = mine ? known : placeOf(draft, record, id, words(raw["name"]));
  const call = draft.callAt(place)?.call;
  if (!call) return place;
  draft.changeCall(place, {
    name: words(raw["name"], call.name),
    arguments: fields(raw["arguments"]),
    argumentsText: "",
    broken: words(raw["broken"]),
    status: call.status === "writing" ? "ready" : call.status,
  });
  return place;
}

export function ready(draft: Draft, record: LogRecord): void {
  const place = newCall(draft, record, fields(record.data["call"]));
  if (!draft.open.includes(place)) draft.open.push(place);
}

export function asked(draft: Draft, record: LogRecord, pending: ReadonlyMap<string, string>): void {
  const data = record.data as unknown as AskedRecord;
  const raw = fields(data.call);
  const place = newCall(draft, record, raw);
  const approval = toApproval(draft.sessionId, record.seq, data, pending.get(words(data.shown)) ?? "");
  draft.changeCall(place, { status: "waiting", approval, diff: approval.diff });
  draft.asked.set(approval.shown, place);
  draft.mark({ seq: record.seq, at: record.timestamp, kind: "approval", label: `asked about ${words(raw["name"])}` });
}

export function toApproval(sessionId: string, seq: number, data: AskedRecord, diff: string, title = ""): Approval {
  const raw = fields(data.call);
  const call = { id: words(raw["id"]), name: words(raw["name"]), arguments: fields(raw["arguments"]), broken: words(raw["broken"]) };
  return {
    sessionId,
    sessionTitle: title,
    callId: call.id,
    shown: words(data.shown),
    seq,
    asked: { ...data, call, commands: strings(data.commands), paths: strings(data.paths) },
    diff,
    expires: words(data.expires),
    state: "open",
    by: "",
    scope: "once",
    word: "",
    rule: "",
  };
}

export function answered(draft: Draft, record: LogRecord): void {
  const data = record.data;
  const shown = words(data["shown"]);
  const place = draft.asked.get(shown) ?? draft.calls.get(words(data["callId"]));
  draft.asked.delete(shown);
  if (place === undefined) return;
  const allowed = data["allowed"] === true;
  const scope = (["once", "session", "rule"] as const).find((one) => one === data["scope"]) ?? ("once" as Scope);
  const by = words(data["by"], "me");
  draft.changeApproval(place, {
    state: allowed ? "allowed" : by === "expiry" ? "expired" : "denied",
    by,
    scope,
    word: words(data["word"]),
    rule: words(data["rule"]),
  });
  draft.parked = false;
  const status = draft.callAt(place)?.call.status;
  if (status === "waiting") draft.changeCall(place, { status: allowed ? "ready" : "denied" });
}

export function intended(draft: Draft, record: LogRecord): void {
  const place = placeOf(draft, record, words(record.data["callId"]), words(record.data["name"]));
  draft.changeCall(place, { status: "running", startedAt: record.timestamp });
  draft.changeTurn(draft.turn, { calls: (draft.turns.get(draft.turn)?.calls ?? 0) + 1 });
  draft.parked = false;
}

export function spoke(draft: Draft, record: LogRecord): void {
  const place = openPlace(draft, words(record.data["callId"]));
  const call = place === undefined ? undefined : draft.callAt(place)?.call;
  if (place === undefined || !call) return;
  const output = call.output + words(record.data["text"]);
  const cut = output.length > OUTPUT * 2;
  draft.changeCall(place, {
    output: cut ? output.slice(-OUTPUT) : output,
    outputCut: call.outputCut || cut,
    status: call.status === "waiting" ? call.status : "running",
  });
}

export function resulted(draft: Draft, record: LogRecord, id: string, raw: Fields): void {
  const place = placeOf(draft, record, id, words(raw["name"], "a tool"));
  const call = draft.callAt(place)?.call;
  if (!call) return;
  const ok = raw["ok"] === true;
  const text = words(raw["text"]);
  const diff = words(fields(raw["data"])["diff"]);
  draft.changeCall(place, {
    result: { ok, text, data: raw["data"] ?? null, media: media(list(raw["media"]).map(fields)) },
    status: ok ? "done" : ended(call, words(raw["outcome"]), text),
    diff: diff || call.diff,
    endedAt: record.timestamp,
  });
  draft.live.delete(place);
  if (call.approval?.state === "open") draft.changeApproval(place, { state: "gone" });
  if (call.approval) draft.asked.delete(call.approval.shown);
}

const OUTCOMES: Readonly<Record<string, CallStatus>> = {
  failed: "failed",
  invalid: "failed",
  denied: "denied",
  refused: "skipped",
  not_run: "skipped",
  interrupted: "stopped",
  not_stopped: "unknown",
  unknown: "unknown",
};

/** How texts begin in logs of earlier versions, which have no outcome. */
const EARLIER: readonly (readonly [string, CallStatus])[] = [
  ["not permitted", "denied"],
  ["not run", "skipped"],
  ["interrupted, and it did not stop", "unknown"],
  ["interrupted before it finished", "stopped"],
  ["no result was recorded", "unknown"],
];

/** How a call ended that did not work. */
function ended(call: Call, outcome: string, text: string): CallStatus {
  if (call.approval?.state === "denied" || call.approval?.state === "expired" || call.status === "denied") return "denied";
  return OUTCOMES[outcome] ?? EARLIER.find(([begin]) => text.startsWith(begin))?.[1] ?? "failed";
}

/** The turn is over: what has no result will get none. */
export function closeCalls(draft: Draft): void {
  for (const place of draft.live) {
    const call = draft.callAt(place)?.call;
    if (!call || call.result || !OPEN.includes(call.status)) continue;
    draft.changeCall(place, { status: call.status === "running" ? "unknown" : "skipped" });
    if (call.approval?.state === "open") draft.changeApproval(place, { state: "gone" });
  }
  draft.asked.clear();
  draft.live.clear();
}

export function filesChanged(draft: Draft, record: LogRecord): void {
  const found = list(record.data["files"]).map(fields).map(toFile);
  const place = draft.calls.get(words(record.data["callId"]));
  const call = place === undefined ? undefined : draft.callAt(place)?.call;
  if (place !== undefined && call) {
    const uncovered = [...call.uncovered, ...strings(record.data["uncovered"])];
    draft.changeCall(place, { files: [...call.files, ...found], uncovered });
  }
  const number = count(record.data["turn"]);
  draft.changeTurn(number, { files: [...(draft.turns.get(number)?.files ?? []), ...found] });
  const label = found.length === 1 ? found[0]!.path : `${found.length} files`;
  if (found.length > 0) draft.mark({ seq: record.seq, at: record.timestamp, kind: "files", label });
}

function toFile(raw: Fields): FileChange {
  const how = raw["how"] === "added" || raw["how"] === "deleted" ? raw["how"] : "changed";
  return { path: words(raw["path"]), how };
}

export function childStarted(draft: Draft, record: LogRecord): void {
  const data = record.data;
  const place = placeOf(draft, record, words(data["callId"]), "task");
  const child: Child = {
    sessionId: words(data["sessionId"]),
    agent: words(data["agent"]),
    prompt: beginning(words(data["prompt"]), 200),
    mode: words(data["mode"]),
    state: "running",
    reason: "",
    tokens: 0,
    cost: 0,
    unpriced: 0,
  };
  const known = draft.callAt(place)?.call.children ?? [];
  draft.changeCall(place, { children: [...known.filter((one) => one.sessionId !== child.sessionId), child] });
}

export function childEnded(draft: Draft, record: LogRecord): void {
  const place = draft.calls.get(words(record.data["callId"]));
  const call = place === undefined ? undefined : draft.callAt(place)?.call;
  if (place === undefined || !call) return;
  const reason = words(record.data["reason"]);
  const metrics = fields(record.data["metrics"]);
  const children = call.children.map((child): Child =>
    child.sessionId === record.data["sessionId"]
      ? { ...child, state: reason === "done" ? "done" : "failed", reason, tokens: count(metrics["tokens"]), cost: count(metrics["cost"]), unpriced: count(metrics["unpriced"]) }
      : child,
  );
  draft.changeCall(place, { children });
}
