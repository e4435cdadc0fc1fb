// A key that was not meant for a question answers nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { counts, MOMENT } from "./armed.ts";

const key = (over: Partial<KeyboardEvent> = {}) => ({ repeat: false, isComposing: false, ...over }) as KeyboardEvent;

test("a key counts once the question has had the focus for a moment", () => {
  assert.equal(counts(key(), 1000, 1000 + MOMENT), true);
  assert.equal(counts(key(), 1000, 1000 + MOMENT - 1), false);
  assert.equal(counts(key(), 0, 99_999), false);
});

test("a key that is held down, or part of a word that is being put together, counts never", () => {
  assert.equal(counts(key({ repeat: true }), 1000, 9000), false);
  assert.equal(counts(key({ isComposing: true }), 1000, 9000), false);
});
