// What a task's date is called, seen from a certain day.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chosen, WORDS } from "./words.ts";
import { dueText } from "./when.ts";

const NOW = new Date(2026, 10, 16, 9, 30);
const said = (due: string) => dueText(due, WORDS.en, "en-US", NOW);

test("days that are near have names, and what is past is late", () => {
  assert.deepEqual(said("2026-11-16"), { text: "Today", late: false });
  assert.deepEqual(said("2026-11-17"), { text: "Tomorrow", late: false });
  assert.deepEqual(said("2026-11-15"), { text: "Yesterday", late: true });
  assert.deepEqual(said("2026-11-20"), { text: "Fri, Nov 20", late: false });
  assert.equal(said("2027-01-01").text, "Fri, Jan 1, 2027");
});

test("a moment has its time, and is late once it is over", () => {
  const moment = new Date(2026, 10, 16, 8, 5).toISOString();
  assert.deepEqual(said(moment), { text: "Today 08:05", late: true });
});

test("the time is written as in the assistant's replies, in every language", () => {
  const moment = new Date(2026, 10, 16, 16, 31).toISOString();
  for (const language of ["en", "es", "ar"] as const) {
    assert.match(dueText(moment, WORDS[language], language, NOW).text, / 16:31$/);
  }
});

test("what is no date is shown as it is", () => {
  assert.deepEqual(said("sometime"), { text: "sometime", late: false });
});

test("the page speaks the first language of the browser that it knows", () => {
  assert.equal(chosen(["fr-FR", "es-MX", "en"]), "es");
  assert.equal(chosen(["ar"]), "ar");
  assert.equal(chosen([]), "en");
});
