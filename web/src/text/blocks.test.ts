// Text that grows is split as if it had come whole, and what is finished is never touched again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, openFence, split, type Split } from "./blocks.ts";

const TEXT = `# Head

A paragraph with [a link][1]
over two lines.

- one

- two
  more

\`\`\`python
x = 1

y = 2
\`\`\`

| a | b |
|---|---|
| 1 | 2 |

[1]: https://example.org

1. first
2. second

The end`;

function grown(step: number): Split {
  let known = EMPTY;
  for (let end = step; end < TEXT.length + step; end += step) known = split(TEXT.slice(0, end), known);
  return known;
}

test("blocks are the same whether the text came whole or letter by letter", () => {
  const whole = split(TEXT);
  for (const step of [1, 2, 3, 7, 50]) {
    const known = grown(step);
    const trim = (one: Split) => [...one.done, one.tail].map((block) => block.trim()).filter(Boolean);
    assert.deepEqual(trim(known), trim(whole));
    assert.equal(known.defs.trim(), "[1]: https://example.org");
  }
});

test("a finished block keeps its place and its text while more comes", () => {
  let known = EMPTY;
  for (let end = 1; end <= TEXT.length; end++) {
    const next = split(TEXT.slice(0, end), known);
    assert.deepEqual(next.done.slice(0, known.done.length), known.done);
    known = next;
  }
});

test("another text begins anew", () => {
  const before = split("one\n\ntwo");
  assert.deepEqual(split("three", before), { text: "three", done: [], tail: "three", defs: "" });
});

test("a fence that is open is code so far", () => {
  assert.deepEqual(openFence("```python\nx = 1\n"), { language: "python", code: "x = 1\n" });
  assert.deepEqual(openFence("~~~~\n~~~\n"), { language: "", code: "~~~\n" });
  assert.equal(openFence("```\nx\n```\n"), null);
  assert.equal(openFence("```x``` y\n"), null);
  assert.equal(openFence("text"), null);
});
