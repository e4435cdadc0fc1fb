// What a reader would not see is written out; honest text of any language stays.
import assert from "node:assert/strict";
import { test } from "node:test";
import { marked, neutral, oneLine, plainOutput } from "./neutral.ts";

test("controls, bidi and tag characters are written out", () => {
  assert.equal(neutral("a\x1b[31m\u202eb\u{e0041}\x07"), "a\\x1b[31m\\u202eb\\U000e0041\\x07");
  assert.equal(neutral("line\nand\ttab"), "line\nand\ttab");
  assert.equal(neutral("\r\u200b\u2066\ufeff"), "\\r\\u200b\\u2066\\ufeff");
});

test("joiners stay inside emoji and Persian, and nowhere else", () => {
  assert.equal(neutral("👩‍💻 می‌خواهم ❤️"), "👩‍💻 می‌خواهم ❤️");
  assert.equal(neutral("a\u200db"), "a\\u200db");
});

test("half of a surrogate pair is written out", () => {
  assert.equal(neutral("x\ud83dy"), "x\\ud83dy");
});

test("what is neutral stays as it is", () => {
  const once = neutral("\x1b]52;c;aGk=\x07\u202e語");
  assert.equal(neutral(once), once);
});

test("one line is one line, and says where it was cut", () => {
  assert.equal(oneLine("a\n  b\tc"), "a b c");
  assert.equal(oneLine("x".repeat(200), 10), `${"x".repeat(9)}…`);
  assert.equal(oneLine("a\u202eb"), "a\\u202eb");
});

test("colours of a program go; other sequences are shown; a return hides nothing", () => {
  assert.equal(plainOutput("\x1b[1;31mred\x1b[0m"), "red");
  assert.equal(plainOutput("\x1b]52;c;eA==\x07"), "\\x1b]52;c;eA==\\x07");
  assert.equal(plainOutput("rm -rf /\rls"), "rm -rf /\nls");
  assert.equal(plainOutput("a\r\nb"), "a\nb");
});

test("pieces tell what was written out", () => {
  assert.deepEqual(marked("a\u202eb"), [
    { text: "a", escaped: false },
    { text: "\\u202e", escaped: true },
    { text: "b", escaped: false },
  ]);
  assert.deepEqual(marked(""), [{ text: "", escaped: false }]);
});
