// What the conversation shows, in order: the items of the session, and after each turn its account.
// Pure. An entry that did not change is the same object, so that it is not rendered again.

import type { Item, Turn, View } from "../state/model.ts";

export interface TurnEntry {
  readonly kind: "account";
  readonly key: string;
  readonly turn: Turn;
}

export type Entry = Item | TurnEntry;

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

/** The entries of a view. Where only the newest items changed, the keys stay the same object. */
export function entriesOf(view: View, before: Entries | null): Entries {
  const list: Entry[] = [];
  const ended = view.turns.filter((turn) => turn.endSeq > 0);
  let next = 0;
  for (const item of view.items) {
    while (next < ended.length && ended[next]!.endSeq < item.seq) list.push(account(ended[next++]!));
    list.push(item);
  }
  while (next < ended.length) list.push(account(ended[next++]!));
  const same = before !== null && sameKeys(before.list, list);
  const keys = same ? before.keys : list.map((entry) => entry.key);
  return { list, keys, byKey: new Map(list.map((entry) => [entry.key, entry])) };
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
    if (entry.kind === "account") continue;
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
      return 44;
    case "account":
      return 40 + (entry.turn.files.length > 0 ? 30 : 0);
  }
}
