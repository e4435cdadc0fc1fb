// The pure parts of the shell: mentions, remembered prompts, the list's order, addresses, figures.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionLine } from "../state/model.ts";
import { branches, inOrder } from "./listing.ts";
import { mentionAt, withPath } from "./mention.ts";
import { Remembered, once } from "./remembered.ts";
import { ago, spent, thousands } from "./words.ts";

test("an @ at the beginning of a word is a mention, and nowhere else", () => {
  assert.deepEqual(mentionAt("see @src/ma", 11), { from: 4, query: "src/ma" });
  assert.deepEqual(mentionAt("@", 1), { from: 0, query: "" });
  for (const text of ["ann@example", "see @src then", "no"]) assert.equal(mentionAt(text, text.length), null);
});

test("a path takes the mention's place, in quotes where it has a space", () => {
  const text = "see @ma and go";
  assert.deepEqual(withPath(text, 7, mentionAt(text, 7)!, "src/main.ts"), { text: "see @src/main.ts and go", cursor: 17 });
  assert.deepEqual(withPath("@x", 2, mentionAt("@x", 2)!, "a b.md"), { text: '@"a b.md" ', cursor: 10 });
});

test("the arrow keys go through what was sent and come back to what was being written", () => {
  const past = new Remembered(once(["one", "two"], ["one"]), "draft");
  assert.deepEqual([past.move(-1), past.move(-1), past.move(-1), past.move(1), past.move(1), past.move(1)], ["one", "two", null, "one", "draft", null]);
});

const line = (id: string, more: Partial<SessionLine> = {}): SessionLine => ({
  id, title: id, workspace: "/w", model: "m", agent: "", mode: "ask", state: "done", reason: "done", waiting: 0, turn: 1, seq: 1,
  cost: 0, unpriced: 0, tokens: 0, createdAt: "", updatedAt: id, tags: [], parent: "", holder: "", ...more,
});

test("children stand below their parents, grandchildren too, and orphans by themselves", () => {
  const lines = [line("1"), line("2", { parent: "1" }), line("3", { parent: "2" }), line("4", { parent: "gone" })];
  const found = branches(lines, "all", "");
  assert.deepEqual(found.map((one) => [one.line.id, one.children.map((child) => child.id)]), [["4", []], ["1", ["3", "2"]]]);
  assert.deepEqual(inOrder(found, () => false), ["4", "1"]);
  assert.deepEqual(inOrder(found, () => true), ["4", "1", "3", "2"]);
});

test("a parent is shown where one of its children fits", () => {
  const lines = [line("1"), line("2", { parent: "1", state: "waiting" }), line("3")];
  assert.deepEqual(branches(lines, "waiting", "").map((one) => one.line.id), ["1"]);
  assert.deepEqual(branches(lines, "all", "3").map((one) => one.line.id), ["3"]);
});

test("a ring of parents, which cannot be, ends", () => {
  const lines = [line("1", { parent: "2" }), line("2", { parent: "1" })];
  assert.equal(branches(lines, "all", "").length, 2);
});

test("figures are short, and an unknown price is never nothing", () => {
  assert.deepEqual([spent(0, 0, 0), spent(0, 2, 9), spent(0, 0, 9), spent(1.5, 1, 9)], ["", "cost unknown", "$0.00", "$1.50 + unknown"]);
  assert.deepEqual([999, 1500, 150_000, 2_500_000].map(thousands), ["999", "1.5k", "150k", "2.5M"]);
  const now = Date.parse("2026-01-02T00:00:00Z");
  assert.deepEqual(["2026-01-01T23:59:50Z", "2026-01-01T23:00:00Z", "2026-01-01T00:00:00Z", "nonsense"].map((one) => ago(one, now)), ["now", "1 h", "1 d", ""]);
});
