// Markdown that grows, split into blocks. Pure.
//
// A block that is whole stays as it is, so that it is rendered once; only what follows the last
// finished block is looked at again when more text comes.

import { Lexer } from "marked";

export interface Split {
  readonly text: string;
  readonly done: readonly string[]; // blocks that will not change any more
  readonly tail: string; // what may still change
  readonly defs: string; // where links are defined, for blocks that refer to them
}

export const EMPTY: Split = { text: "", done: [], tail: "", defs: "" };

/** The text in blocks; `before` is what was known of its beginning. */
export function split(text: string, before: Split = EMPTY): Split {
  const grows = text.startsWith(before.text);
  const from = grows ? before : EMPTY;
  if (grows && text.length === before.text.length) return before;
  const rest = (from.tail + text.slice(from.text.length)).replace(/\r\n?/g, "\n");
  if (openFence(rest) !== null) return { text, done: from.done, tail: rest, defs: from.defs };
  const tokens = new Lexer({ gfm: true }).blockTokens(rest);
  let last = tokens.length - 1;
  while (last > 0 && tokens[last]?.type === "space") last--;
  const done = [...from.done];
  let defs = from.defs;
  let end = 0;
  for (const token of tokens.slice(0, last)) {
    end += token.raw.length;
    if (token.type === "def") defs += token.raw.endsWith("\n") ? token.raw : `${token.raw}\n`;
    else if (token.type !== "space") done.push(token.raw);
  }
  return { text, done, tail: rest.slice(end), defs }; // by length: the lexer's own words may differ
}

export interface Fence {
  readonly language: string;
  readonly code: string;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/;

/** The code so far, where the text is a fence that nobody has closed yet. */
export function openFence(text: string): Fence | null {
  const head = FENCE.exec(text);
  if (!head) return null;
  const mark = head[1]!;
  const info = head[2]!.trim();
  if (mark[0] === "`" && info.includes("`")) return null;
  const closing = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}[ \\t]*$`, "m");
  const code = text.slice(head[0].length);
  if (closing.test(code)) return null;
  return { language: info.split(/\s+/)[0] ?? "", code };
}
