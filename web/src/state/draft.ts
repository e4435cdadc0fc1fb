// The view while it is being made: the one place in which values are replaced by others.
//
// `items` only grows and its places are stable, so that a call is known by its place. What is
// replaced is another object: those who compare by identity see exactly what changed.

import type { Approval, Call, CallItem, FileChange, Item, Mark, Meter, Queued, Todo, Turn } from "./model.ts";

export interface Rewind {
  readonly seq: number;
  readonly to: number;
}

/** The place of the notice, and what it will say: after the next attempt, or if there is none. */
interface Retry {
  readonly place: number;
  readonly after: string;
  readonly gaveUp: string;
}

/** What is known of the session from elsewhere: the log may not be loaded from its beginning. */
export interface Base {
  readonly seq: number; // the record up to which the meter counts already
  readonly title: string;
  readonly mode: string;
  readonly model: string;
  readonly agent: string;
  readonly running: number;
  readonly todos: readonly Todo[];
  readonly queued: readonly Queued[];
  readonly meter: Meter;
}

export const NOTHING: Base = {
  seq: 0,
  title: "",
  mode: "",
  model: "",
  agent: "",
  running: 0,
  todos: [],
  queued: [],
  meter: { tokens: 0, cost: 0, unpriced: 0, contextTokens: 0, contextWindow: 0 },
};

export class Draft {
  readonly sessionId: string;
  readonly base: Base;
  first = 0;
  last = 0;
  items: Item[] = [];
  turns = new Map<number, Turn>();
  marks: Mark[] = [];
  todos: readonly Todo[];
  queued: readonly Queued[];
  open: number[] = []; // the places of the reply that streams
  calls = new Map<string, number>(); // the place of the newest call of that id
  live = new Set<number>(); // the places of calls without a result
  asked = new Map<string, number>(); // `shown` of open questions, and the place of their call
  rewinds: Rewind[] = [];
  retry: Retry | null = null; // the notice of a retry that is waited for
  turn = 0;
  running: number;
  parked = false;
  activity = "";
  mode: string;
  model: string;
  agent: string;
  title: string;
  meter: Meter;

  constructor(sessionId: string, base: Base) {
    this.sessionId = sessionId;
    this.base = base;
    this.todos = base.todos;
    this.queued = base.queued;
    this.running = this.turn = base.running;
    this.mode = base.mode;
    this.model = base.model;
    this.agent = base.agent;
    this.title = base.title;
    this.meter = base.meter;
  }

  add(item: Item): number {
    this.endRetry("after");
    this.items.push(item);
    return this.items.length - 1;
  }

  /** Nothing is waited for any more: the notice of the retry says what came of it. */
  endRetry(what: "after" | "gaveUp"): void {
    const item = this.retry && this.items[this.retry.place];
    if (this.retry && item?.kind === "notice") this.items[this.retry.place] = { ...item, text: this.retry[what], hint: "" };
    this.retry = null;
  }

  /** What every item begins with. */
  common(kind: string, seq: number, at: string): { key: string; seq: number; at: string; turn: number; gone: false; discarded: false } {
    const key = `${kind}:${seq}:${this.items.length - this.beganAt(seq)}`;
    return { key, seq, at, turn: this.turn, gone: false, discarded: false };
  }

  /** Several items may begin with one record: they are numbered from the first of them. */
  private beganAt(seq: number): number {
    let place = this.items.length;
    while (place > 0 && this.items[place - 1]?.seq === seq) place -= 1;
    return place;
  }

  callAt(place: number): CallItem | null {
    const item = this.items[place];
    return item?.kind === "call" ? item : null;
  }

  changeCall(place: number, change: Partial<Call>): void {
    const item = this.callAt(place);
    if (item) this.items[place] = { ...item, call: { ...item.call, ...change } };
  }

  changeApproval(place: number, change: Partial<Approval>): void {
    const approval = this.callAt(place)?.call.approval;
    if (approval) this.changeCall(place, { approval: { ...approval, ...change } });
  }

  changeTurn(number: number, change: Partial<Turn>): void {
    const turn = this.turns.get(number);
    if (turn) this.turns.set(number, { ...turn, ...change });
  }

  mark(mark: Mark): void {
    this.marks.push(mark);
  }
}

/** Was that record part of the conversation at record `at`, after these rewinds? */
export function alive(seq: number, at: number, rewinds: readonly Rewind[]): boolean {
  let until = at;
  for (let place = rewinds.length - 1; place >= 0; place -= 1) {
    const rewind = rewinds[place]!;
    if (rewind.seq > until) continue;
    if (seq > rewind.seq) break;
    until = rewind.to;
  }
  return seq <= until;
}

/** Can this session undo that turn? */
export function canBeUndone(turn: Turn): boolean {
  return turn.files.length > 0 && !turn.undone && !turn.inherited;
}

/** The files that all turns changed, the newest word for each; what was undone is left out. */
export function changed(turns: Iterable<Turn>): readonly FileChange[] {
  const found = new Map<string, FileChange>();
  for (const turn of turns) {
    if (turn.undone) continue;
    for (const file of turn.files) {
      const before = found.get(file.path);
      if (before?.how === "added" && file.how === "deleted") found.delete(file.path);
      else if (before?.how === "added" && file.how === "changed") continue;
      else found.set(file.path, file);
    }
  }
  return [...found.values()];
}
