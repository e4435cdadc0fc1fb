// What the conversation shows, in order: the items of the session, and after each turn its account.
// Pure. An entry that did not change is the same object, so that it is not rendered again.

import type { Item, Turn, View } from "../state/model.ts";

export interface TurnEntry {
  readonly kind: "account";
  readonly key: string;
  readonly turn: Turn;
}

/** Entries that a rewind took back, as one line. */
export interface TakenEntry {
  readonly kind: "taken";
  readonly key: string;
  readonly count: number;
}

export type Entry = Item | TurnEntry | TakenEntry;

export interface Entries {
  readonly list: readonly Entry[];
  readonly keys: readonly string[];
  readonly byKey: ReadonlyMap<string, Entry>;
}

const accounts = new WeakMap<Turn, TurnEntry>();

function account(turn: Turn): TurnEntry {
  let found = accounts.get(turn);
  if (!found) accounts.set(turn, (found = { kind: "account", key: `turn-${turn.number}-${turn.seq}`, turn }));
  return found;
}

/** The entries of a view; `all`: also what was taken back. The keys stay the same object while they may. */
export function entriesOf(view: View, before: Entries | null, all = true): Entries {
  const whole = ordered(view);
  const list = all ? whole : folded(whole);
  const same = before !== null && sameKeys(before.list, list);
  const keys = same ? before.keys : list.map((entry) => entry.key);
  return { list, keys, byKey: new Map(list.map((entry) => [entry.key, entry])) };
}

function ordered(view: View): Entry[] {
  const list: Entry[] = [];
  const ended = view.turns.filter((turn) => turn.endSeq > 0);
  let next = 0;
  for (const item of view.items) {
    while (next < ended.length && ended[next]!.endSeq < item.seq) list.push(account(ended[next++]!));
    list.push(item);
  }
  while (next < ended.length) list.push(account(ended[next++]!));
  return list;
}

/** Each run of what was taken back as one entry; the accounts of its turns go with it. */
function folded(list: readonly Entry[]): Entry[] {
  const kept: Entry[] = [];
  let count = 0;
  let first = "";
  list.forEach((entry, at) => {
    const before = list[at - 1];
    const after = entry.kind === "account" && count > 0 && before !== undefined && before.kind !== "account";
    if (isGone(entry) || after) {
      first ||= entry.key;
      count += isGone(entry) ? 1 : 0;
      return;
    }
    if (count > 0) kept.push({ kind: "taken", key: `taken-${first}`, count });
    [count, first] = [0, ""];
    kept.push(entry);
  });
  if (count > 0) kept.push({ kind: "taken", key: `taken-${first}`, count });
  return kept;
}

function isGone(entry: Entry): boolean {
  return entry.kind !== "account" && entry.kind !== "taken" && entry.gone;
}

function sameKeys(old: readonly Entry[], now: readonly Entry[]): boolean {
  if (old.length !== now.length) return false;
  for (let at = 0; at < now.length; at++) if (old[at]!.key !== now[at]!.key) return false;
  return true;
}

/** The entry to which a record belongs: the last that began at it or before. */
export function entryAt(list: readonly Entry[], seq: number): Entry | null {
  let found: Entry | null = null;
  for (const entry of list) {
    if (entry.kind === "account" || entry.kind === "taken") continue;
    if (entry.seq > seq) break;
    found = entry;
  }
  return found;
}

/** What can be found in an entry. */
export function textOf(entry: Entry): string {
  switch (entry.kind) {
    case "prompt":
    case "text":
    case "thinking":
      return entry.text;
    case "call":
      return callText(entry.call);
    case "notice":
      return `${entry.text} ${entry.hint}`;
    case "taken":
      return "";
    case "account":
      return entry.turn.files.map((file) => file.path).join(" ");
  }
}

function callText(call: Extract<Item, { kind: "call" }>["call"]): string {
  const said = call.result?.text ?? call.output;
  return `${call.name} ${JSON.stringify(call.arguments)} ${said} ${call.diff}`;
}

const LINE = 22;

/** How tall an entry may be, before anybody has seen it. */
export function estimate(entry: Entry | undefined): number {
  if (!entry) return 60;
  switch (entry.kind) {
    case "prompt":
    case "text":
      return 48 + LINE * Math.ceil(entry.text.length / 90);
    case "thinking":
      return 40;
    case "call":
      return entry.call.approval?.state === "open" ? 320 : entry.call.diff ? 200 : 52;
    case "notice":
    case "taken":
      return 44;
    case "account":
      return 40 + (entry.turn.files.length > 0 ? 30 : 0);
  }
}
