// Addresses are read as they are written, and nonsense leads nowhere.

import assert from "node:assert/strict";
import { test } from "node:test";
import { toFragment, toPlace } from "./place.ts";

test("an address leads to the session and the record that it was made of", () => {
  for (const place of [{ id: "a b/c", seq: 0 }, { id: "s1", seq: 42 }, { id: "ä@1", seq: 7 }]) assert.deepEqual(toPlace(toFragment(place.id, place.seq)), place);
  assert.equal(toFragment(""), "#/");
});

test("nonsense leads nowhere", () => {
  for (const fragment of ["", "#", "#/", "#/s/", "#/s/%E0%A4%A", "#main"]) assert.equal(toPlace(fragment).id, "");
});
