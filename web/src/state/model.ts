// What the page shows of a session: plain values, which the folds (fold.ts) make of records.
//
// A value never changes: what is different is another object, so that a component may compare by
// identity (`memo`). `key` is stable for as long as the thing lives, from its first delta to the
// end, also when older records are loaded in front of it. Knows nothing of the DOM or of HTTP.

import type { ComponentChildren, JSX } from "preact";
import type { components } from "../api/schema.ts";

// ---- the wire: generated from the OpenAPI document (scripts/api-types)

type Schemas = components["schemas"];

export type Mode = NonNullable<Schemas["NewSession"]["mode"]>;
export type State = Schemas["SessionInfo"]["state"];
export type Role = Schemas["CallerInfo"]["role"];
export type Scope = NonNullable<Schemas["ApprovalAnswer"]["scope"]>;
export type When = NonNullable<Schemas["PromptRequest"]["when"]>;
export type SessionLine = Schemas["SessionInfo"];
export type AskedRecord = Omit<Schemas["ApprovalAsked"], "type">;
export type Pending = Omit<Schemas["ApprovalRequest"], "asked"> & { readonly asked: AskedRecord };
export type Todo = Required<Schemas["Todo"]>;
export type Queued = Schemas["QueuedPrompt"] & { readonly when: When };

/** A record of the log. Its data may be of a type that this page does not know. */
export type LogRecord = Omit<Schemas["Record"], "data"> & {
  readonly data: { readonly type: string; readonly [key: string]: unknown };
};

export interface Media {
  readonly type: "image" | "file";
  readonly mediaType: string;
  readonly data: string; // base64
  readonly url: string; // never loaded: the page takes nothing from elsewhere
  readonly name: string;
}

// ---- the view

export interface Attachment extends Media {}

/** A call with its arguments, which the log leaves out if there are none. */
export type RawCall = Omit<Schemas["ToolCall"], "type" | "arguments"> & {
  readonly arguments: Readonly<Record<string, unknown>>;
};

/** What an approval request is about. */
export type Asked = Omit<AskedRecord, "call"> & { readonly call: RawCall };

interface Common {
  readonly key: string;
  readonly seq: number; // the record in which it began
  readonly at: string; // that record's timestamp
  readonly turn: number;
  readonly gone: boolean; // taken back by a rewind: shown faintly, or not
  readonly discarded: boolean; // part of a reply that broke off and was asked for again
}

/** What a person (or a program in their name) said. `forkAt` is the state before it. */
export interface PromptItem extends Common {
  readonly kind: "prompt";
  readonly text: string;
  readonly by: string;
  readonly steered: boolean; // it came into a running turn
  readonly media: readonly Attachment[];
  readonly forkAt: number;
}

/** Words of the model, as Markdown. `forkAt` is the state after the reply; 0 while it streams. */
export interface TextItem extends Common {
  readonly kind: "text";
  readonly text: string;
  readonly streaming: boolean;
  readonly model: string;
  readonly forkAt: number;
}

export interface ThinkingItem extends Common {
  readonly kind: "thinking";
  readonly text: string;
  readonly streaming: boolean;
}

export interface CallItem extends Common {
  readonly kind: "call";
  readonly call: Call;
}

/**
 * Something that happened to the session. `what` says which icon and tone:
 * turn_end (only where it did not simply end well), error, rewind, compaction, fork, undo, mode,
 * repair, agent, resumed, stop (a reply that was cut off), trace (for those who look closely).
 */
export interface NoticeItem extends Common {
  readonly kind: "notice";
  readonly what:
    | "turn_end" | "error" | "rewind" | "compaction" | "fork" | "undo" | "mode"
    | "repair" | "agent" | "resumed" | "stop" | "trace" | "grant";
  readonly tone: "quiet" | "info" | "warn" | "bad";
  readonly text: string; // one sentence
  readonly hint: string; // what to do next, or more of it
  readonly sessionId: string; // a session to go to, or ""
}

export type Item = PromptItem | TextItem | ThinkingItem | CallItem | NoticeItem;

/**
 * writing: its arguments come in · ready: whole, nothing decided · waiting: a person has to say ·
 * running · done · failed · stopped (before it finished) · denied (a person or a rule said no) ·
 * unknown (nobody knows whether it ran, or runs still) · skipped (it was not run).
 */
export type CallStatus =
  | "writing" | "ready" | "waiting" | "running" | "done" | "failed" | "stopped" | "denied" | "unknown" | "skipped";

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly argumentsText: string; // the JSON so far, while status is "writing"
  readonly broken: string;
  readonly status: CallStatus;
  readonly output: string; // what it said while it ran (the newest part, where it is long)
  readonly outputCut: boolean;
  readonly result: CallResult | null;
  readonly diff: string; // unified; of the result, or of the question before it ran
  readonly approval: Approval | null;
  readonly files: readonly FileChange[];
  readonly uncovered: readonly string[]; // what undo does not cover, in words
  readonly children: readonly Child[];
  readonly startedAt: string; // when it began to run
  readonly endedAt: string;
}

export interface CallResult {
  readonly ok: boolean;
  readonly text: string;
  readonly data: unknown;
  readonly media: readonly Media[];
}

export interface FileChange {
  readonly path: string;
  readonly how: "added" | "changed" | "deleted";
}

export interface Child {
  readonly sessionId: string;
  readonly agent: string;
  readonly prompt: string;
  readonly mode: string;
  readonly state: "running" | "done" | "failed";
  readonly reason: string;
  readonly tokens: number;
  readonly cost: number;
  readonly unpriced: number;
}

/** A question, and its answer once there is one. */
export interface Approval {
  readonly sessionId: string;
  readonly sessionTitle: string;
  readonly callId: string;
  readonly shown: string;
  readonly seq: number;
  readonly asked: Asked;
  readonly diff: string;
  readonly expires: string; // ISO, or ""
  readonly state: "open" | "posted" | "allowed" | "denied" | "expired" | "gone";
  readonly by: string;
  readonly scope: Scope;
  readonly word: string;
  readonly rule: string;
}

export interface Turn {
  readonly number: number;
  readonly seq: number;
  readonly startedAt: string;
  readonly endSeq: number; // 0 while it runs
  readonly endedAt: string;
  readonly reason: string; // done failed timeout interrupted budget stuck parked left, or ""
  readonly detail: string;
  readonly tokens: number;
  readonly cost: number;
  readonly unpriced: number;
  readonly calls: number;
  readonly files: readonly FileChange[];
  readonly undone: boolean;
  readonly inherited: boolean; // run by the session that this one was forked from: only that one can undo it
  readonly prompt: string; // how its first prompt begins
}

export interface Meter {
  readonly tokens: number;
  readonly cost: number;
  readonly unpriced: number;
  readonly contextTokens: number;
  readonly contextWindow: number;
}

/** A place on the timeline. */
export interface Mark {
  readonly seq: number;
  readonly at: string;
  readonly kind: "prompt" | "reply" | "call" | "approval" | "files" | "end" | "notice";
  readonly label: string;
}

export interface View {
  readonly sessionId: string;
  readonly first: number; // the first record that is loaded; 1: everything is
  readonly last: number; // the newest
  readonly items: readonly Item[];
  readonly turns: readonly Turn[];
  readonly marks: readonly Mark[];
  readonly todos: readonly Todo[];
  readonly queued: readonly Queued[];
  readonly approvals: readonly Approval[]; // the open ones
  readonly files: readonly FileChange[]; // of all turns that are loaded, undone ones left out
  readonly running: number; // the turn that runs, or 0
  readonly parked: boolean;
  readonly activity: string; // what another agent says that it is doing now
  readonly mode: string;
  readonly model: string;
  readonly agent: string;
  readonly title: string;
  readonly meter: Meter;
}

// ---- what components may ask for. Each says by itself what went wrong (a notice at the bottom);
// a promise that resolves to false (or null) means that it did not happen.

export interface AnswerWords {
  readonly allowed: boolean;
  readonly scope?: Scope;
  readonly word?: string;
  readonly rule?: string;
}

export interface Actions {
  /** `again`: somebody was faster, or the question is another one; it has been told already. */
  answer(approval: Approval, answer: AnswerWords): Promise<"ok" | "again" | "failed">;
  /** Past calls that a rule would have covered, in words; null where it cannot be said. */
  previewRule(sessionId: string, rule: string): Promise<readonly string[] | null>;
  /** A new session that goes on from the state after record `at`; the page goes there. */
  fork(at: number): Promise<boolean>;
  /** Asks, then makes the conversation what it was at record `to`. */
  rewind(to: number): Promise<boolean>;
  /** Shows what an undo of that turn (0: the newest) would do, asks, and does it. */
  undo(turn: number): void;
  interrupt(): Promise<boolean>;
  openSession(id: string, seq?: number): void;
  /** Puts words into the composer, after what stands there, and goes there. */
  compose(text: string): void;
  copy(text: string): Promise<boolean>;
  /** One thin line at the bottom; `bad` stays until it is closed. */
  say(text: string, tone?: "quiet" | "bad"): void;
  /** One page of older records; false at the beginning. */
  loadOlder(): Promise<boolean>;
  /** The timeline: show the session as it was at that record; null: as it is, live. */
  seek(seq: number | null): void;
}

// ---- what web/src/conversation/index.ts exports, and what it is given

export interface ConversationProps {
  readonly view: View;
  readonly actions: Actions;
  readonly role: Role; // below "answer" nothing can be answered, below "drive" nothing sent
  readonly past: boolean; // an earlier state is shown (timeline): nothing can be answered there
  readonly loadingOlder: boolean;
  readonly sent: number; // how many prompts were sent from here: after each, the end is shown
  readonly target: number; // scroll to what record `seq` belongs to, and mark it; 0: stay at the end
}

export interface TimelineProps {
  readonly view: View; // of the whole session, whatever is shown
  readonly at: number | null; // the record that is shown; null: live
  readonly actions: Pick<Actions, "seek" | "loadOlder">;
}

export interface ApprovalCardProps {
  readonly approval: Approval;
  readonly actions: Actions;
  readonly role: Role;
  readonly compact?: boolean; // in the tray: says which session, shows less
}

export interface DiffProps {
  readonly diff: string; // unified, maybe of several files
  readonly label?: string;
}

export interface MarkdownProps {
  readonly text: string;
  readonly streaming?: boolean;
}

export type Component<P> = (props: P) => JSX.Element | null;
export type Children = ComponentChildren;

/**
 * `web/src/conversation/index.ts` exports, by these names:
 *   Conversation: Component<ConversationProps>
 *   Timeline:     Component<TimelineProps>
 *   ApprovalCard: Component<ApprovalCardProps>   (used in the tray of all sessions, too)
 *   Diff:         Component<DiffProps>           (used by the undo preview, too)
 *   Markdown:     Component<MarkdownProps>
 * and its own sheet, web/src/conversation/conversation.css, imported there. Colours, spaces and
 * fonts are the custom properties of web/src/style/tokens.css.
 */
export interface ConversationModule {
  readonly Conversation: Component<ConversationProps>;
  readonly Timeline: Component<TimelineProps>;
  readonly ApprovalCard: Component<ApprovalCardProps>;
  readonly Diff: Component<DiffProps>;
  readonly Markdown: Component<MarkdownProps>;
}
