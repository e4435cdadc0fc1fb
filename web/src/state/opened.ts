// One session that is shown: its newest records first, then live, older ones when they are asked for.
//
// `records` is what is loaded, without gaps. A stream gives a position only to what is settled on
// disk; what was seen above it is dropped when the line is taken up again, because after a loss of
// power the same number may stand for another record.

import { batch, signal } from "@preact/signals";
import { type RecordPage, type SessionDetail, api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import type { SseEvent } from "../api/sse.ts";
import { Stream } from "../api/stream.ts";
import { type Base, Fold, NOTHING, fold, toTodos } from "./fold.ts";
import { Frame } from "./frames.ts";
import type { LogRecord, Pending, View } from "./model.ts";
import { lineForgets, lineIs, lineStops, putLines } from "./store.ts";

const NEWEST = 400;
const ALL = 900; // a session that is not longer is loaded at once, and nothing of it is missing
const OLDER = 1000;

export class Opened {
  readonly id: string;
  readonly view = signal<View | null>(null);
  readonly past = signal<View | null>(null);
  readonly at = signal<number | null>(null);
  readonly detail = signal<SessionDetail | null>(null);
  readonly loadingOlder = signal(false);
  readonly problem = signal<Problem | null>(null);
  private records: LogRecord[] = [];
  private folding: Fold;
  private base: Base = NOTHING;
  private settled = 0;
  private torn = false; // what is above the settled mark is to be dropped with the next record
  private stream: Stream | null = null;
  private closed = false;
  private loading: Promise<boolean> | null = null;
  private readonly frame = new Frame(() => this.publish());

  constructor(id: string) {
    this.id = id;
    this.folding = new Fold(id);
  }

  async open(): Promise<void> {
    try {
      const detail = await api.detail(this.id);
      const page = await api.records(this.id, { before: detail.seq + 1, limit: detail.seq > ALL ? NEWEST : ALL });
      if (this.closed) return;
      this.take(detail, page);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.status === 0 || error.status >= 500) setTimeout(() => this.closed || void this.open(), 1000);
      else this.problem.value = error;
    }
  }

  close(): void {
    this.closed = true;
    this.stream?.close();
    lineForgets(this.id);
  }

  private take(detail: SessionDetail, page: RecordPage): void {
    this.records = fromMessage(page.records);
    this.settled = this.records.at(-1)?.seq ?? 0;
    this.refold(detail);
    batch(() => {
      this.detail.value = detail;
      this.publish();
    });
    this.stream = new Stream({
      url: () => api.streamUrl(this.id, this.settled),
      rests: () => true,
      onOpen: () => (this.torn = true),
      onEvent: (event) => this.hear(event),
      onLink: (link, problem) => {
        lineIs(this.id, link === "live");
        if (link === "ended") this.problem.value = problem;
      },
    }).start();
  }

  private refold(detail: SessionDetail): void {
    this.base = toBase(detail, this.records[0]?.seq === 1);
    const diffs = this.folding.diffs;
    this.folding = new Fold(this.id, this.base);
    for (const [shown, diff] of diffs) this.folding.diffs.set(shown, diff);
    for (const record of this.records) this.folding.apply(record);
    this.folding.tell(detail.pending);
  }

  private hear(event: SseEvent): void {
    if (event.name === "stopping") return lineStops();
    if (event.name === "resync") return this.cut(event.data);
    if (event.data) this.append(JSON.parse(event.data) as LogRecord);
    const id = Number(event.id ?? NaN);
    if (Number.isInteger(id)) this.settled = Math.max(this.settled, id);
  }

  /** The server's log ends before what we have: that is what counts. */
  private cut(data: string): void {
    const after = Number((JSON.parse(data) as { after?: number }).after ?? NaN);
    if (!Number.isInteger(after) || after >= this.settled) return;
    this.settled = after;
    this.drop();
    this.frame.ask();
  }

  private append(record: LogRecord): void {
    if (this.torn) this.drop();
    if (record.seq <= (this.records.at(-1)?.seq ?? 0)) return;
    this.records.push(record);
    this.folding.apply(record);
    this.frame.ask();
  }

  private drop(): void {
    this.torn = false;
    const last = this.records.at(-1)?.seq ?? 0;
    if (last <= this.settled) return;
    this.records = this.records.filter((record) => record.seq <= this.settled);
    if (this.detail.value) this.refold(this.detail.value);
  }

  private publish(): void {
    if (!this.closed) this.view.value = this.folding.view();
  }

  /** The server says what open questions would change. */
  tell(found: readonly Pending[]): void {
    this.folding.tell(found.filter((one) => one.sessionId === this.id));
    if (this.view.value) this.frame.ask();
  }

  /** What is not in the log: grants, limits, how large the window is. */
  async refresh(): Promise<void> {
    const detail = await api.detail(this.id).catch(() => null);
    if (!detail || this.closed) return;
    putLines([detail]);
    this.detail.value = detail;
    this.tell(detail.pending);
  }

  loadOlder(): Promise<boolean> {
    this.loading ??= this.older().finally(() => (this.loading = null));
    return this.loading;
  }

  private async older(): Promise<boolean> {
    const first = this.records[0]?.seq ?? 1;
    const detail = this.detail.value;
    if (first <= 1 || !detail) return false;
    this.loadingOlder.value = true;
    const page = await api.records(this.id, { before: first, limit: OLDER }).catch(() => null);
    const found = (page?.records ?? []).filter((record) => record.seq < first);
    if (!this.closed && found.length > 0) {
      this.records = [...fromMessage(found), ...this.records];
      this.refold(detail);
      this.publish();
    }
    this.loadingOlder.value = false;
    return found.length > 0;
  }

  /** Everything back to that record, so that it can be gone to. */
  async reach(seq: number): Promise<void> {
    while ((this.records[0]?.seq ?? 1) > Math.max(1, seq) && (await this.loadOlder()));
  }

  async seek(seq: number | null): Promise<void> {
    this.at.value = seq;
    if (seq === null) this.past.value = null;
    else {
      await this.reach(seq);
      if (this.at.value === seq) this.past.value = fold(this.id, this.records, this.base, seq);
    }
  }
}

/** The records from the first message or prompt on: what was cut off in front of it would be calls without a name. */
function fromMessage(records: readonly LogRecord[]): LogRecord[] {
  const whole = records[0]?.seq === 1;
  const begins = ({ data }: LogRecord): boolean => data.type === "user_prompt" || (data.type === "message" && data["role"] !== "tool");
  return records.slice(whole ? 0 : Math.max(0, records.findIndex(begins)));
}

/** Where the log is loaded from its first record on, it says everything itself. */
function toBase(detail: SessionDetail, whole: boolean): Base {
  const window = detail.context?.window ?? 0;
  if (whole) return { ...NOTHING, meter: { ...NOTHING.meter, contextWindow: window } };
  return {
    seq: detail.seq,
    title: detail.title,
    mode: detail.mode,
    model: detail.model,
    agent: detail.agent,
    running: detail.state === "running" || detail.state === "waiting" ? detail.turn : 0,
    todos: toTodos(detail.todos),
    queued: detail.queued.map((one) => ({ ...one, when: "queue" as const })),
    meter: {
      tokens: detail.tokens,
      cost: detail.cost,
      unpriced: detail.unpriced,
      contextTokens: detail.context?.tokens ?? 0,
      contextWindow: window,
    },
  };
}
