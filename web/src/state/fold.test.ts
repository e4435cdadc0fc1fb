// The folds, on small logs written by hand and on the logs of old formats.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { alive } from "./draft.ts";
import { Fold, NOTHING, fold } from "./fold.ts";
import type { CallItem, Item, LogRecord } from "./model.ts";

const AT = "2026-01-02T03:04:05.000Z";
const log = (...data: Record<string, unknown>[]): LogRecord[] =>
  data.map((one, index) => ({ seq: index + 1, timestamp: AT, data: one as LogRecord["data"] }));
const delta = (eventType: string, more: Record<string, unknown>) => ({ type: "event", eventType, ...more });
const START = { type: "session_start", sessionId: "s", mode: "server", model: "m1", resumed: false };
const PROMPT = { type: "user_prompt", content: "hello", turn: 1, by: "ann" };
const ENTERED = { type: "message", role: "user", content: "hello", prompt: 2, turn: 1 };
const said = (items: readonly Item[]) => items.map((item) => (item.kind === "call" ? item.call.name : `${item.kind} ${item.text}`));
const callOf = (items: readonly Item[]) => (items.find((item) => item.kind === "call") as CallItem).call;

test("a prompt that was taken back waits no more", () => {
  const view = fold("s", log(START, PROMPT, { type: "prompt_withdrawn", prompt: 2, turn: 1 }));
  assert.deepEqual([view.queued, view.running], [[], 0]);
});

test("a prompt waits until a message brings it in", () => {
  const before = fold("s", log(START, PROMPT));
  assert.deepEqual([before.queued.map((one) => one.prompt), before.items], [["hello"], []]);
  const after = fold("s", log(START, PROMPT, ENTERED));
  assert.deepEqual([after.queued, said(after.items), after.running], [[], ["prompt hello"], 1]);
  assert.deepEqual(after.items[0]?.kind === "prompt" && [after.items[0].by, after.items[0].forkAt], ["ann", 1]);
});

test("deltas grow one item, and the whole reply puts it right under the same key", () => {
  const records = log(
    START, PROMPT, ENTERED,
    delta("ThinkingDelta", { text: "hm" }), delta("ThinkingDelta", { text: "m" }),
    delta("TextDelta", { text: "Hi" }), delta("TextDelta", { text: " ther" }),
    { type: "message", role: "assistant", stopReason: "complete", parts: [{ type: "thinking", text: "hmm" }, { type: "text", text: "Hi there" }] },
  );
  const during = fold("s", records, NOTHING, 7);
  const after = fold("s", records);
  assert.deepEqual(said(during.items), ["prompt hello", "thinking hmm", "text Hi ther"]);
  assert.deepEqual(during.items.map((item) => "streaming" in item && item.streaming), [false, false, true]);
  assert.deepEqual(said(after.items), ["prompt hello", "thinking hmm", "text Hi there"]);
  assert.deepEqual(after.items.map((item) => item.key), during.items.map((item) => item.key));
  assert.equal(after.items[2]?.kind === "text" && after.items[2].forkAt, 8);
});

const CALL = { type: "tool_call", id: "c1", name: "shell", arguments: { command: "ls" } };
const ASKED = { type: "approval_asked", call: CALL, shown: "h1", reason: "it writes", expires: AT };
const WORKED = [
  START, PROMPT, ENTERED,
  delta("ToolCallStarted", { callId: "c1", name: "shell" }),
  delta("ToolCallArgsDelta", { callId: "c1", text: '{"comm' }),
  delta("ToolCallReady", { call: CALL }),
  { type: "message", role: "assistant", stopReason: "tool_use", content: "", toolCalls: [CALL] },
  ASKED,
  { type: "approval_answered", callId: "c1", allowed: true, by: "bob", shown: "h1", scope: "session" },
  { type: "intent", callId: "c1", name: "shell" },
  delta("ToolOutputDelta", { callId: "c1", text: "a.py\n" }),
  { type: "files", turn: 1, callId: "c1", files: [{ path: "a.py", how: "added" }] },
  { type: "message", role: "tool", callId: "c1", result: { ok: true, text: "done", data: { diff: "--- a" } } },
  { type: "usage", usage: { inputTokens: 10, outputTokens: 5, cacheReadTokens: 85 }, cost: 0.5 },
  { type: "turn_end", turn: 1, reason: "done" },
];

test("a call goes from its first fragment over a question to its result", () => {
  const records = log(...WORKED);
  const status = records.map((record) => fold("s", records, NOTHING, record.seq).items.find((item) => item.kind === "call"))
    .map((item) => (item as CallItem | undefined)?.call.status);
  assert.deepEqual(status, [
    undefined, undefined, undefined, "writing", "writing", "ready", "ready", "waiting", "ready", "running", "running", "running", "done", "done", "done",
  ]);
  const whole = fold("s", records);
  const call = callOf(whole.items);
  assert.deepEqual([call.output, call.diff, call.files, call.arguments], ["a.py\n", "--- a", [{ path: "a.py", how: "added" }], { command: "ls" }]);
  assert.deepEqual([call.approval?.state, call.approval?.by, call.approval?.scope], ["allowed", "bob", "session"]);
  assert.deepEqual([whole.files, whole.approvals, whole.running], [[{ path: "a.py", how: "added" }], [], 0]);
  assert.deepEqual([whole.meter.tokens, whole.meter.cost, whole.meter.contextTokens], [100, 0.5, 95]);
  assert.deepEqual(whole.turns.map((turn) => [turn.reason, turn.tokens, turn.calls, turn.endSeq]), [["done", 100, 1, 15]]);
});

test("an open question shows what it would change once the server has said so", () => {
  const folding = new Fold("s");
  for (const record of log(...WORKED).slice(0, 8)) folding.apply(record);
  assert.deepEqual(folding.view().approvals.map((one) => [one.callId, one.state, one.diff]), [["c1", "open", ""]]);
  folding.tell([{ sessionId: "s", sessionTitle: "", parent: "", callId: "c1", shown: "h1", seq: 8, asked: ASKED as never, diff: "+x", expires: "", posted: false }]);
  assert.deepEqual(folding.view().approvals.map((one) => one.diff), ["+x"]);
});

test("a reply that broke off stays to be seen, is said to be discarded, and the next one is another", () => {
  const view = fold("s", log(
    START, PROMPT, ENTERED,
    delta("TextDelta", { text: "Half a sen" }), delta("ToolCallStarted", { callId: "c9", name: "write" }),
    delta("ReplyDiscarded", { reason: "cut" }),
    delta("TraceEvent", { kind: "retry", detail: { error: "cut. Try.", seconds: 12.3, attempt: 4 } }),
    delta("TextDelta", { text: "A whole" }), { type: "message", role: "assistant", stopReason: "complete", content: "A whole one." },
  ));
  assert.deepEqual(said(view.items), [
    "prompt hello", "text Half a sen", "write", "notice The reply above broke off and is discarded.",
    "notice Cut. Tried again (attempt 4).", "text A whole one.",
  ]);
  assert.deepEqual(view.items.map((item) => item.discarded), [false, true, true, false, false, false]);
  assert.equal(callOf(view.items).status, "skipped");
  assert.ok(view.items.every((item) => item.kind !== "text" || !item.streaming));
});

test("attempts in a row are one notice, which is about the past once the turn goes on or ends", () => {
  const retry = (attempt: number) => delta("TraceEvent", { kind: "retry", detail: { error: "busy. Try.", seconds: 3, attempt } });
  const wait = [START, PROMPT, ENTERED, retry(2), retry(3)];
  const last = (...more: Record<string, unknown>[]) => fold("s", log(...wait, ...more)).items.filter((item) => item.kind === "notice");
  const told = (items: readonly Item[]) => items.map((item) => item.kind === "notice" && [item.text, item.hint]);
  assert.deepEqual(told(last()), [["Busy. Retrying in 3 s, attempt 3…", "Press Stop to give up."]]);
  assert.deepEqual(told(last(delta("TextDelta", { text: "Here" }))), [["Busy. Tried again (attempt 3).", ""]]);
  const end = { type: "turn_end", turn: 1, reason: "interrupted", detail: "the turn was interrupted" };
  assert.deepEqual(told(last(end)), [["Busy.", ""], ["The turn was stopped.", ""]]);
});

test("that an answer is not complete is said once, in whole sentences, without the vendor's code", () => {
  const cut = { type: "message", role: "assistant", stopReason: "max_tokens", stopDetail: "length", content: "One, " };
  const during = fold("s", log(START, PROMPT, ENTERED, cut)).items.at(-1);
  assert.equal(during?.kind === "notice" && during.hint, "");
  const end = { type: "turn_end", turn: 1, reason: "max_tokens", detail: "the reply was cut off at its token limit", hint: "Ask for less." };
  const view = fold("s", log(START, PROMPT, ENTERED, cut, end));
  assert.deepEqual(said(view.items), ["prompt hello", "text One, ", "notice The answer is not complete: the reply was cut off at its token limit."]);
});

test("how a call ended is what its outcome says, in logs of earlier versions what its text begins with", () => {
  const status = (more: Record<string, unknown>) => {
    const result = { type: "message", role: "tool", callId: "c1", result: { ok: false, text: "", ...more } };
    return callOf(fold("s", log(START, PROMPT, ENTERED, delta("ToolCallReady", { call: CALL }), result)).items).status;
  };
  const outcomes = ["failed", "invalid", "denied", "refused", "not_run", "interrupted", "not_stopped", "unknown"];
  const ends = ["failed", "failed", "denied", "skipped", "skipped", "stopped", "unknown", "unknown"];
  assert.deepEqual(outcomes.map((outcome) => status({ outcome, text: "not permitted" })), ends);
  const texts = ["not permitted: no", "not run: the turn is over", "interrupted before it finished", "no result was recorded", "not allowed here"];
  assert.deepEqual(texts.map((text) => status({ text })), ["denied", "skipped", "stopped", "unknown", "failed"]);
});

test("a fork has spent nothing yet, whatever the session before it spent", () => {
  const fork = { type: "fork", sessionId: "other", at: 15 };
  const { meter, turns } = fold("s", log(...WORKED, fork));
  assert.deepEqual([meter.tokens, meter.cost, meter.contextTokens, turns[0]?.cost], [0, 0, 95, 0.5]);
});

test("what bridle says to the model is nobody's prompt", () => {
  const cut = { type: "message", role: "assistant", stopReason: "max_tokens", content: "One, " };
  const view = fold("s", log(START, PROMPT, ENTERED, cut, { type: "message", role: "user", content: "Go on.", by: "bridle" }));
  assert.deepEqual(view.items.map((item) => item.kind), ["prompt", "text", "notice"]);
});

test("a call id that comes again is another call", () => {
  const twice = [...WORKED.slice(0, 14), { type: "message", role: "assistant", stopReason: "tool_use", content: "", toolCalls: [CALL] }];
  assert.deepEqual(said(fold("s", log(...twice)).items), ["prompt hello", "shell", "shell"]);
});

test("what has no result when the turn ends is unknown, or was never begun", () => {
  const end = { type: "turn_end", turn: 1, reason: "interrupted" };
  assert.equal(callOf(fold("s", log(...WORKED.slice(0, 11), end)).items).status, "unknown");
  const asked = fold("s", log(...WORKED.slice(0, 8), end));
  assert.deepEqual([callOf(asked.items).status, callOf(asked.items).approval?.state, asked.approvals], ["skipped", "gone", []]);
});

test("a rewind takes back what came after, and a later one may bring it back", () => {
  const rewind = (to: number) => ({ type: "rewind", to, messages: [] });
  const gone = (...more: Record<string, unknown>[]) => fold("s", log(...WORKED, ...more)).items.filter((item) => item.kind !== "notice").map((item) => item.gone);
  assert.deepEqual(gone(rewind(3)), [false, true]);
  assert.deepEqual(gone(rewind(3), rewind(15)), [false, false]);
  assert.equal(alive(5, 20, [{ seq: 10, to: 4 }, { seq: 15, to: 9 }]), true);
  assert.equal(alive(12, 20, [{ seq: 10, to: 4 }, { seq: 15, to: 9 }]), false);
});

test("what was asked before a fork is not asked here", () => {
  const view = fold("s", log(...WORKED.slice(0, 8), { type: "fork", sessionId: "other", at: 8 }));
  assert.deepEqual([view.approvals, callOf(view.items).status, callOf(view.items).approval?.state, view.running], [[], "skipped", "gone", 0]);
});

test("a log that is loaded from its middle begins with what is whole", () => {
  const records = log(...WORKED);
  const view = fold("s", records.slice(4), { ...NOTHING, running: 1, mode: "plan", seq: 15, meter: { ...NOTHING.meter, tokens: 7 } });
  assert.deepEqual([said(view.items), view.first, view.mode, view.meter.tokens], [["shell"], 5, "plan", 7]);
});

test("any beginning of a log, and any part of it, can be shown; a repeated record changes nothing", () => {
  const folder = process.env["BRIDLE_LOGS"];
  const files = folder ? [`${folder}/format-1.jsonl`, `${folder}/format-1-lasting.jsonl`] : [];
  const found = files.map((file) => readFileSync(file, "utf8").split("\n").flatMap((line) => {
    try { return [JSON.parse(line) as LogRecord]; } catch { return []; }
  }));
  for (const records of [...found, log(...WORKED)]) {
    for (let cut = 0; cut <= records.length; cut += 1) {
      fold("s", records.slice(0, cut));
      fold("s", records.slice(cut));
    }
    assert.deepEqual(fold("s", records.flatMap((one) => [one, one])), fold("s", records));
    assert.equal(new Set(fold("s", records).items.map((item) => item.key)).size, fold("s", records).items.length);
  }
});
