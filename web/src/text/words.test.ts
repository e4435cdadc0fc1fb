// Money is written as everywhere else in bridle; tests/test_usage.py has the same table.

import assert from "node:assert/strict";
import { test } from "node:test";
import { formatCost } from "./words.ts";

const AMOUNTS: readonly (readonly [number, string])[] = [
  [0, "$0.00"],
  [1e-6, "under $0.0001"],
  [0.0001, "$0.0001"],
  [0.00031, "$0.00031"],
  [0.0042, "$0.0042"],
  [0.00999, "$0.01"],
  [0.0123, "$0.012"],
  [0.05, "$0.05"],
  [0.0996, "$0.10"],
  [0.14, "$0.14"],
  [0.5, "$0.50"],
  [12.346, "$12.35"],
  [1234.5, "$1,234.50"],
];

test("money is written in one way", () => {
  for (const [cost, words] of AMOUNTS) assert.equal(formatCost(cost), words);
});

test("what has no known price is said and never shown as nothing", () => {
  assert.deepEqual([formatCost(0, 1), formatCost(0.5, 1)], ["cost unknown", "$0.50 + unknown"]);
});
