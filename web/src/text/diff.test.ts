// Diffs are read without losing a line, made without inventing one, and paired for two columns.
import assert from "node:assert/strict";
import { test } from "node:test";
import { diffOf, parseDiff, sides, textOf } from "./diff.ts";
import { compare, wordMarks } from "./lines.ts";

const DIFF = `--- a/basket.py
+++ b/basket.py
@@ -3,5 +3,5 @@ def total
 def total(prices, discount=0):
-    return sum(prices) / 10
+    return sum(prices) / 100
 
 # end
`;

test("a unified diff becomes rows with the numbers of both sides", () => {
  const [file] = parseDiff(DIFF);
  assert.equal(file?.path, "basket.py");
  assert.deepEqual([file?.added, file?.removed], [1, 1]);
  const rows = file!.hunks[0]!.rows.map((row) => [row.kind, row.old, row.now, textOf(row)]);
  assert.deepEqual(rows, [
    ["same", 3, 3, "def total(prices, discount=0):"],
    ["gone", 4, 0, "    return sum(prices) / 10"],
    ["new", 0, 4, "    return sum(prices) / 100"],
    ["same", 5, 5, ""],
    ["same", 6, 6, "# end"],
  ]);
});

test("words that changed are marked, and no others", () => {
  const [, gone, fresh] = parseDiff(DIFF)[0]!.hunks[0]!.rows;
  assert.deepEqual(gone!.spans.filter((span) => span.changed).map((span) => span.text), ["10"]);
  assert.deepEqual(fresh!.spans.filter((span) => span.changed).map((span) => span.text), ["100"]);
});

test("lines that look like heads inside a hunk are lines", () => {
  const text = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- a comment\n+++ a comment\n same\n";
  const rows = parseDiff(text)[0]!.hunks[0]!.rows.map((row) => [row.kind, textOf(row)]);
  assert.deepEqual(rows, [["gone", "-- a comment"], ["new", "++ a comment"], ["same", "same"]]);
});

test("several files, new ones and deleted ones, are told apart", () => {
  const text = "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+hi\n--- a/o.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-ho\n";
  assert.deepEqual(parseDiff(text).map((file) => [file.path, file.how]), [["n.txt", "added"], ["o.txt", "deleted"]]);
});

test("what is no diff is kept as a note", () => {
  const [file] = parseDiff("(too large to compare: 30,000 and 1 lines)");
  assert.equal(textOf(file!.hunks[0]!.rows[0]!), "(too large to compare: 30,000 and 1 lines)");
  assert.equal(file!.hunks[0]!.rows[0]!.kind, "note");
});

test("no line of a change is left out, whatever it looks like", () => {
  const lines = ["src/a.py", "(this is not what the file holds now)", "@@ 1 of 2 everywhere @@", "- old", "+ new", "", "index 12", "diff x"];
  const rows = parseDiff(lines.join("\n"))[0]!.hunks.flatMap((hunk) => hunk.rows);
  assert.deepEqual(rows.map((row) => [row.kind, textOf(row)]), [
    ["note", "src/a.py"], ["note", "(this is not what the file holds now)"], ["note", "@@ 1 of 2 everywhere @@"],
    ["gone", " old"], ["new", " new"], ["note", ""], ["note", "index 12"], ["note", "diff x"],
  ]);
  const open = parseDiff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n+more\n")[0]!;
  assert.deepEqual(open.hunks[0]!.rows.map(textOf), ["a", "\\ No newline at end of file", "b", "more"]);
});

test("a text for another gives both texts back", () => {
  const letters = "abcdef";
  let seed = 7;
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 300; round++) {
    const make = () => Array.from({ length: random(12) }, () => letters[random(4)]!);
    const [old, now] = [make(), make()];
    const steps = compare(old, now);
    assert.deepEqual(steps.filter((step) => step.kind !== "new").map((step) => old[step.old]), old);
    assert.deepEqual(steps.filter((step) => step.kind !== "gone").map((step) => now[step.now]), now);
    for (const step of steps) if (step.kind === "same") assert.equal(old[step.old], now[step.now]);
  }
});

test("only what is near a change is shown of two long texts", () => {
  const old = Array.from({ length: 100 }, (_, at) => `line ${at}`);
  const now = old.with(50, "another");
  const file = diffOf("x", old.join("\n"), now.join("\n"));
  assert.equal(file.hunks.length, 1);
  assert.deepEqual(file.hunks[0]!.rows.map((row) => row.kind).join(" "), "same same same gone new same same same");
  assert.equal(file.hunks[0]!.rows[0]!.old, 48);
});

test("two columns stand side by side, also where one is shorter", () => {
  const rows = diffOf("x", "a\nb\nc", "a\nB").hunks[0]!.rows;
  const pairs = sides(rows).map(({ left, right }) => [left && textOf(left), right && textOf(right)]);
  assert.deepEqual(pairs, [["a", "a"], ["b", "B"], ["c", null]]);
});

test("lines with little in common have no marks", () => {
  const [left] = wordMarks("import os", "class Basket(list):");
  assert.deepEqual(left, [{ text: "import os", changed: false }]);
});

test("texts that differ everywhere are compared in bounded time", () => {
  const many = (word: string) => Array.from({ length: 9000 }, (_, at) => `${word}${at}`);
  assert.equal(compare(many("a"), many("b")).length, 18000);
});
