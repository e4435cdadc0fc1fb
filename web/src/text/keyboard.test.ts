// What is text and what is a command, on the keyboards that people have.

import assert from "node:assert/strict";
import { test } from "node:test";
import { commandOf, isText, type Press } from "./keyboard.ts";

function press(key: string, modifiers: readonly string[] = [], code = ""): Press {
  const has = (name: string): boolean => modifiers.includes(name);
  return { key, code, ctrlKey: has("Control"), altKey: has("Alt"), metaKey: has("Meta"), getModifierState: has };
}

test("a letter alone is text and no command", () => {
  for (const key of ["m", "Y", "?", "é", "ж", "😀", " ", "Dead"]) {
    assert.equal(isText(press(key), false), true, key);
    assert.equal(commandOf(press(key), false), "", key);
  }
});

test("keys without a letter, and letters with Control, are not text", () => {
  for (const key of ["Enter", "ArrowUp", "F5", "Shift"]) assert.equal(isText(press(key), false), false, key);
  assert.equal(isText(press("c", ["Control"]), false), false);
  assert.equal(isText(press("c", ["Meta"]), true), false);
});

test("Alt and a letter is a command, whatever alphabet the keyboard has", () => {
  assert.equal(commandOf(press("u", ["Alt"]), false), "u");
  assert.equal(commandOf(press("г", ["Alt"], "KeyU"), false), "u");
  assert.equal(commandOf(press("ArrowDown", ["Alt"]), false), "ArrowDown");
});

test("letters that take AltGr, or Option on a Mac, are text", () => {
  const at = press("@", ["Control", "Alt", "AltGraph"]);
  assert.equal(isText(at, false), true);
  assert.equal(commandOf(at, false), "");
  const option = press("å", ["Alt"], "KeyA");
  assert.equal(isText(option, true), true);
  assert.equal(commandOf(option, true), "");
  assert.equal(commandOf(press("å", ["Control", "Alt"], "KeyA"), true), "a");
});
