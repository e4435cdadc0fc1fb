// Where everything stands, whatever is measured, added at the end or loaded in front.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Heights } from "./heights.ts";

const named = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `k${from + at}`);

test("what was not measured has its estimate, and what was has its height", () => {
  const heights = new Heights(() => 10);
  heights.update(named(0, 4));
  assert.equal(heights.total, 40);
  assert.equal(heights.measure("k1", 25), true);
  assert.equal(heights.measure("k1", 25.2), false);
  assert.deepEqual([0, 1, 2, 3].map((at) => heights.top(at)), [0, 10, 35, 45]);
  assert.equal(heights.total, 55);
});

test("offsets find their entries, at the edges too", () => {
  const heights = new Heights(() => 10);
  heights.update(named(0, 3));
  assert.deepEqual([-5, 0, 9.9, 10, 29, 30, 99].map((offset) => heights.at(offset)), [0, 0, 0, 1, 2, 2, 2]);
  assert.deepEqual(heights.range(5, 15), [0, 2]);
  heights.update([]);
  assert.deepEqual([heights.at(0), heights.range(0, 9), heights.total], [-1, [0, 0], 0]);
});

test("heights stay with their keys when older ones are loaded in front", () => {
  const heights = new Heights(() => 10);
  heights.update(named(5, 8));
  heights.measure("k6", 100);
  assert.equal(heights.top(2), 110);
  heights.update(named(0, 9));
  assert.equal(heights.place("k6"), 6);
  assert.equal(heights.top(7), 160);
  assert.equal(heights.total, 180);
});

test("any order of changes gives what counting anew would give", () => {
  let seed = 3;
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
  const heights = new Heights(() => 7);
  const known = new Map<string, number>();
  let [from, to] = [500, 500];
  for (let round = 0; round < 500; round++) {
    if (random(3) === 0) from = Math.max(0, from - random(5));
    if (random(2) === 0) to += random(4);
    const keys = named(from, to);
    heights.update(keys);
    if (keys.length === 0) continue;
    const key = keys[random(keys.length)]!;
    known.set(key, 1 + random(50));
    heights.measure(key, known.get(key)!);
    const place = random(keys.length);
    const sum = keys.slice(0, place).reduce((all, one) => all + (known.get(one) ?? 7), 0);
    assert.equal(heights.top(place), sum);
    assert.equal(heights.at(sum), place);
  }
});
