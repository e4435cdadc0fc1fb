// The fold of a session's records into what the page shows. Pure: no DOM, no clock, no network.
//
// `apply` takes the next record; `view` is a snapshot that never changes. A log may be loaded from
// its middle on: `base` says what is known from elsewhere, and deltas whose beginning is not loaded
// are left out, since the whole reply follows.

import * as calls from "./calls.ts";
import { type Base, Draft, NOTHING, changed } from "./draft.ts";
import type { Approval, LogRecord, Pending, Todo, Turn, View } from "./model.ts";
import * as notices from "./notices.ts";
import { beginning, count, fields, list, words } from "./reading.ts";
import * as replies from "./replies.ts";

export { NOTHING, type Base } from "./draft.ts";

type Apply = (draft: Draft, record: LogRecord, fold: Fold) => void;

export class Fold {
  private readonly draft: Draft;
  readonly diffs = new Map<string, string>(); // `shown`: the diff of what is asked
  private whole = false; // a record that is no delta has been seen

  constructor(sessionId: string, base: Base = NOTHING) {
    this.draft = new Draft(sessionId, base);
  }

  get last(): number {
    return this.draft.last;
  }

  apply(record: LogRecord): void {
    const draft = this.draft;
    if (record.seq <= draft.last) return; // seen: a stream may repeat, a page may overlap
    draft.first ||= record.seq;
    draft.last = record.seq;
    const streamed = record.data.type === "event";
    this.whole ||= !streamed || draft.first === 1;
    if (!this.whole) return;
    const apply = streamed ? STREAMED[words(record.data["eventType"])] : RECORDED[record.data.type];
    apply?.(draft, record, this);
  }

  /** What the server knows of open questions beyond the log: what they would change. */
  tell(pendings: readonly Pending[]): void {
    for (const pending of pendings) {
      if (!pending.diff) continue;
      this.diffs.set(pending.shown, pending.diff);
      const place = this.draft.asked.get(pending.shown);
      if (place === undefined || this.draft.callAt(place)?.call.diff) continue;
      this.draft.changeApproval(place, { diff: pending.diff });
      this.draft.changeCall(place, { diff: pending.diff });
    }
  }

  view(): View {
    const draft = this.draft;
    const turns = [...draft.turns.values()];
    return {
      sessionId: draft.sessionId,
      first: draft.first,
      last: draft.last,
      items: draft.items.slice(),
      turns,
      marks: draft.marks.slice(),
      todos: draft.todos,
      queued: draft.queued,
      approvals: this.open(),
      files: changed(turns),
      running: draft.running,
      parked: draft.parked,
      activity: draft.activity,
      mode: draft.mode,
      model: draft.model,
      agent: draft.agent,
      title: draft.title,
      meter: draft.meter,
    };
  }

  private open(): readonly Approval[] {
    const found: Approval[] = [];
    for (const place of this.draft.asked.values()) {
      const approval = this.draft.callAt(place)?.call.approval;
      if (approval?.state === "open" || approval?.state === "posted") found.push(approval);
    }
    return found;
  }
}

/** The view of these records: the whole, or what stood at some record. */
export function fold(sessionId: string, records: Iterable<LogRecord>, base: Base = NOTHING, until = Infinity): View {
  const folding = new Fold(sessionId, base);
  for (const record of records) {
    if (record.seq > until) break;
    folding.apply(record);
  }
  return folding.view();
}

function message(draft: Draft, record: LogRecord): void {
  const data = record.data;
  if (data["result"] !== undefined && data["result"] !== null) {
    calls.resulted(draft, record, words(data["callId"]), fields(data["result"]));
  } else if (data["role"] === "assistant") {
    replies.complete(draft, record);
    notices.stopNotice(draft, record);
  } else {
    entered(draft, record);
  }
}

/** A message that no model wrote: a prompt that waited, or history that was brought in. */
function entered(draft: Draft, record: LogRecord): void {
  const data = record.data;
  const found = replies.parts(data);
  for (const part of found) {
    if (part["type"] !== "tool_output") continue;
    const raw = { ...part, ok: part["isError"] !== true };
    calls.resulted(draft, record, words(part["callId"]), raw);
  }
  if (data["role"] !== "user" || data["by"] === "bridle") return; // the model is asked to go on
  const prompt = count(data["prompt"]);
  const waited = draft.queued.find((one) => one.seq === prompt);
  if (waited) draft.queued = draft.queued.filter((one) => one !== waited);
  const number = count(data["turn"]) || waited?.turn || draft.turn || 1;
  const steered = draft.running === number && draft.turns.has(number);
  draft.turn = number;
  draft.running = number;
  draft.parked = false;
  const text = replies.joined(found);
  if (!draft.turns.has(number)) draft.turns.set(number, newTurn(number, record, text));
  const common = draft.common("prompt", record.seq, record.timestamp);
  const by = waited?.by ?? "me";
  const media = replies.media(found);
  const forkAt = (prompt || record.seq) - 1;
  draft.add({ ...common, kind: "prompt", text, by, steered, media, forkAt });
  draft.mark({ seq: record.seq, at: record.timestamp, kind: "prompt", label: beginning(text) });
}

function newTurn(number: number, record: LogRecord, prompt: string): Turn {
  return {
    number,
    seq: record.seq,
    startedAt: record.timestamp,
    endSeq: 0,
    endedAt: "",
    reason: "",
    detail: "",
    tokens: 0,
    cost: 0,
    unpriced: 0,
    calls: 0,
    files: [],
    undone: false,
    inherited: false,
    prompt: beginning(prompt),
  };
}

function used(draft: Draft, record: LogRecord): void {
  const data = record.data;
  const usage = fields(data["usage"]);
  const cached = count(usage["cacheReadTokens"]) + count(usage["cacheWriteTokens"]);
  const input = count(usage["inputTokens"]);
  const context = usage["inputHasCache"] === true ? Math.max(input, cached) : input + cached;
  const tokens = context + count(usage["outputTokens"]);
  const priced = typeof data["cost"] === "number";
  const more = { tokens, cost: count(data["cost"]), unpriced: priced ? 0 : 1 };
  const turn = draft.turns.get(draft.turn);
  if (turn) draft.changeTurn(draft.turn, plus(turn, more));
  const meter = record.seq > draft.base.seq ? { ...draft.meter, ...plus(draft.meter, more) } : draft.meter;
  const turns = (data["purpose"] ?? "turn") === "turn"; // a title says nothing of the window
  draft.meter = turns && record.seq > draft.base.seq ? { ...meter, contextTokens: data["estimated"] === true ? 0 : context } : meter;
}

type Sum = Pick<Turn, "tokens" | "cost" | "unpriced">;

function plus(sum: Sum, more: Sum): Sum {
  return { tokens: sum.tokens + more.tokens, cost: sum.cost + more.cost, unpriced: sum.unpriced + more.unpriced };
}

function ended(draft: Draft, record: LogRecord): void {
  replies.settle(draft);
  draft.endRetry("gaveUp");
  draft.open = [];
  calls.closeCalls(draft);
  const number = count(record.data["turn"]);
  const reason = words(record.data["reason"]);
  draft.changeTurn(number, {
    endSeq: record.seq,
    endedAt: record.timestamp,
    reason,
    detail: words(record.data["detail"]),
  });
  draft.running = 0;
  draft.parked = false;
  draft.activity = "";
  notices.endNotice(draft, record);
  draft.mark({ seq: record.seq, at: record.timestamp, kind: "end", label: `turn ${number}: ${reason}` });
}

export function toTodos(value: unknown): readonly Todo[] {
  return list(value)
    .map(fields)
    .map((one): Todo => {
      const status = one["status"] === "in_progress" || one["status"] === "completed" ? one["status"] : "pending";
      return { content: words(one["content"]), status };
    });
}

function attached(draft: Draft, record: LogRecord): void {
  const agent = words(record.data["agent"]);
  if (agent === draft.agent) return;
  draft.agent = agent;
  notices.notice(draft, record, "agent", `From here on the agent is ${agent}.`);
}

/** What everything before adds up to: what is not loaded is said here. */
function checkpoint(draft: Draft, record: LogRecord): void {
  const data = record.data;
  draft.title = words(data["title"]) || draft.title;
  draft.mode = words(data["mode"]) || draft.mode;
  draft.todos = toTodos(data["todos"]);
  draft.turn ||= count(data["turn"]);
}

/** A new process begins: whatever streamed in the one before has ended with it. */
function began(draft: Draft, record: LogRecord): void {
  replies.settle(draft);
  draft.open = [];
  notices.began(draft, record);
}

function interrupted(draft: Draft): void {
  replies.settle(draft);
  draft.open = [];
}

/** What ran or was asked before a fork or a rewind is nobody's business here any more. */
function leftBehind(draft: Draft): void {
  interrupted(draft);
  calls.closeCalls(draft);
  if (draft.running) draft.changeTurn(draft.running, { reason: draft.turns.get(draft.running)?.reason || "left" });
  draft.running = 0;
  draft.parked = false;
}

const RECORDED: Readonly<Record<string, Apply>> = {
  session_start: began,
  user_prompt: replies.queue,
  prompt_withdrawn: (draft, record) =>
    void (draft.queued = draft.queued.filter((one) => one.seq !== record.data["prompt"])),
  message,
  intent: calls.intended,
  files: calls.filesChanged,
  undo: notices.undone,
  usage: used,
  todo: (draft, record) => void (draft.todos = toTodos(record.data["todos"])),
  title: (draft, record) => void (draft.title = words(record.data["title"])),
  turn_parked: (draft) => void (draft.parked = true),
  turn_end: ended,
  approval_asked: (draft, record, folding) => calls.asked(draft, record, folding.diffs),
  approval_answered: calls.answered,
  mode: notices.moded,
  fork: (draft, record) => {
    leftBehind(draft);
    notices.forked(draft, record);
  },
  rewind: (draft, record) => {
    leftBehind(draft);
    draft.todos = toTodos(record.data["todos"]);
    notices.rewound(draft, record);
  },
  compaction: notices.compacted,
  repair: notices.repaired,
  checkpoint,
  agent: attached,
  child_start: calls.childStarted,
  child_end: calls.childEnded,
};

const STREAMED: Readonly<Record<string, Apply>> = {
  TextDelta: (draft, record) => replies.grow(draft, record, "text"),
  ThinkingDelta: (draft, record) => replies.grow(draft, record, "thinking"),
  ToolCallStarted: (draft, record) => {
    replies.settle(draft);
    calls.started(draft, record);
  },
  ToolCallArgsDelta: calls.argued,
  ToolCallReady: calls.ready,
  ToolOutputDelta: calls.spoke,
  ResponseCompleted: interrupted,
  ReplyDiscarded: (draft, record) => {
    replies.discard(draft);
    calls.closeCalls(draft);
    notices.discarded(draft, record);
  },
  AgentActivity: (draft, record) => {
    draft.activity = words(record.data["description"]) || words(record.data["toolName"]);
  },
  TraceEvent: notices.traced,
};
