// What the conversation shows, in which order, and what is said of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call, Item, Turn, View } from "../state/model.ts";
import { changesOf, fromArguments, rowsIn } from "./changes.ts";
import { entriesOf, entryAt, textOf } from "./entries.ts";
import { restOf, status, subject } from "./summary.ts";

const prompt = (seq: number) => ({ kind: "prompt", key: `p${seq}`, seq, text: `prompt ${seq}` }) as Item;
const turn = (number: number, seq: number, endSeq: number) => ({ number, seq, endSeq, files: [{ path: "a.py", how: "changed" }] }) as unknown as Turn;
const view = (items: Item[], turns: Turn[]) => ({ items, turns }) as unknown as View;
const call = (over: Partial<Call>): Call => ({
  id: "c", name: "shell", arguments: {}, argumentsText: "", broken: "", status: "done", output: "", outputCut: false, result: null,
  diff: "", approval: null, files: [], uncovered: [], children: [], startedAt: "", endedAt: "", ...over,
});

test("the account of a turn stands behind its last item, and a running turn has none", () => {
  const made = entriesOf(view([prompt(1), prompt(10)], [turn(1, 1, 9), turn(2, 10, 0)]), null);
  assert.deepEqual(made.keys, ["p1", "turn-1-1", "p10"]);
  const ended = entriesOf(view([prompt(1), prompt(10)], [turn(1, 1, 9), turn(2, 10, 12)]), made);
  assert.deepEqual(ended.keys, ["p1", "turn-1-1", "p10", "turn-2-10"]);
});

test("what was taken back is one line, until somebody wants to see it", () => {
  const gone = (seq: number) => ({ ...prompt(seq), gone: true }) as Item;
  const items = [prompt(1), gone(10), gone(11), prompt(20)];
  const turns = [turn(1, 1, 9), turn(2, 10, 12)];
  assert.deepEqual(entriesOf(view(items, turns), null, false).keys, ["p1", "turn-1-1", "taken-p10", "p20"]);
  assert.deepEqual(entriesOf(view(items, turns), null, true).keys, ["p1", "turn-1-1", "p10", "p11", "turn-2-10", "p20"]);
});

test("keys are the same object while only what is said grows", () => {
  const turns = [turn(1, 1, 9)];
  const before = entriesOf(view([prompt(1)], turns), null);
  const after = entriesOf(view([prompt(1)], turns), before);
  assert.equal(after.keys, before.keys);
  assert.equal(after.list[1], before.list[1]);
});

test("a record belongs to the entry that began last before it", () => {
  const { list } = entriesOf(view([prompt(3), prompt(10)], [turn(1, 3, 9)]), null);
  assert.deepEqual([1, 3, 9, 10, 99].map((seq) => entryAt(list, seq)?.key ?? ""), ["", "p3", "p3", "p10", "p10"]);
  assert.equal(textOf(list[1]!), "a.py");
});

test("a call is said in one line, whatever it is called with", () => {
  assert.equal(subject(call({ arguments: { command: "ls\n -l", timeout: 3 } })), "ls -l");
  assert.equal(subject(call({ name: "grep", arguments: { pattern: "x", path: "src" } })), "x in src");
  assert.equal(subject(call({ name: "task", arguments: { description: "Look", prompt: "Look around" } })), "Look");
  assert.equal(subject(call({ name: "other", arguments: { count: 3 } })), '{"count":3}');
  assert.equal(subject(call({ name: "other" })), "");
  assert.deepEqual(["## Plan\n1. Read", "# Speed up\n1. Read"].map((plan) => subject(call({ name: "exit_plan_mode", arguments: { plan } }))), ["", "Speed up"]);
  assert.equal(subject(call({ name: "todo_write", arguments: { todos: [{ status: "completed" }, {}] } })), "2 items");
  assert.equal(subject(call({ status: "writing", argumentsText: '{"command": "ls -' })), "ls -");
  assert.equal(subject(call({ arguments: { command: "a\u202eb" } })), "a\\u202eb");
});

test("a command tells its exit code", () => {
  const result = { ok: false, text: "(no output)\n[exit code 2]", data: null, media: [] };
  assert.equal(status(call({ status: "failed", result })), "failed: exit code 2 · no output");
});

test("changes come from the record, else from the arguments, else there are none", () => {
  const edit = { path: "a", edits: [{ old: "x\n", new: "y\n" }, { old: "1", new: "2" }] };
  const [file] = fromArguments("edit", edit);
  assert.deepEqual([file?.path, file?.added, file?.removed, file?.hunks.length], ["a", 2, 2, 2]);
  assert.equal(fromArguments("write", { path: "n", content: "hi\n" })[0]?.how, "added");
  assert.deepEqual(fromArguments("read", { path: "n" }), []);
  assert.deepEqual(fromArguments("edit", { path: "n", old: 3 }), []);
  assert.deepEqual(fromArguments("edit", { path: "n", edits: [{ old: "a", new: "b" }, { old: "c" }] }), []);
  assert.equal(rowsIn(changesOf(call({ diff: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" }))), 2);
  assert.equal(restOf(call({ arguments: { command: "ls", timeout: 3 } })), '{\n  "timeout": 3\n}');
});
