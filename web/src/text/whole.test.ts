// Does the comparison find every word that a rendered text leaves out?

import assert from "node:assert/strict";
import { test } from "node:test";
import { tellsAll } from "./whole.ts";

test("what was rendered says everything, or it does not", () => {
  assert.equal(tellsAll("1. **Read** the `tests`\n2. fix", "Read the tests fix"), true);
  assert.equal(tellsAll("> 3) do\n- 4. so", "do so"), true);
  assert.equal(tellsAll("a\n\n[//]: # (and b)", "a"), false);
  assert.equal(tellsAll("a b", "b a"), false);
  assert.equal(tellsAll("a a", "a"), false);
  assert.equal(tellsAll("a&#8203;b", "ab"), false);
  assert.equal(tellsAll("", ""), true);
});
