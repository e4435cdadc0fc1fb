// Places on the timeline mean the records that they show.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Mark, Turn, View } from "../state/model.ts";
import { costLine, nearest, stepped, ticks, told, x } from "./strip.ts";

const mark = (seq: number, kind: Mark["kind"], label = ""): Mark => ({ seq, kind, label, at: "" });
const turn = (number: number, seq: number, endSeq: number, cost: number, unpriced = 0) => ({ number, seq, endSeq, cost, unpriced }) as Turn;
const view = {
  first: 1, last: 101,
  marks: [mark(1, "prompt", "one"), mark(11, "call", "shell ls"), mark(51, "prompt", "two"), mark(101, "end")],
  turns: [turn(1, 1, 50, 1), turn(2, 51, 101, 3)],
} as unknown as View;

test("records stand on the line by their numbers", () => {
  assert.deepEqual([0, 1, 51, 101, 999].map((seq) => x(view, seq)), [0, 0, 500, 1000, 1000]);
  assert.equal(ticks(view, "prompt"), "M0 2V22M500 2V22");
});

test("a place means the mark next to it", () => {
  assert.deepEqual([0, 0.07, 0.4, 1].map((share) => nearest(view, share)?.seq), [1, 11, 51, 101]);
});

test("steps go from mark to mark, or from prompt to prompt, and end in now", () => {
  assert.equal(stepped(view, null, -1)?.seq, 51);
  assert.equal(stepped(view, 51, -1)?.seq, 11);
  assert.equal(stepped(view, 11, 1)?.seq, 51);
  assert.equal(stepped(view, 101, 1), null);
  assert.equal(stepped(view, null, -1, true)?.seq, 51);
  assert.equal(stepped(view, 1, -1)?.seq, 1);
});

test("what a place says has its turn, what happened and what was spent", () => {
  assert.equal(told(view, 12), "turn 1, call: shell ls, $1.00");
  assert.equal(told(view, null), "now");
  assert.equal(told({ ...view, turns: [turn(1, 1, 50, 0, 2)] }, 12), "turn 1, call: shell ls, cost unknown");
});

test("the cost rises to the top", () => {
  assert.equal(costLine(view), "M0 24H0V24L490 18.5H500V18.5L1000 2H1000");
});
