// The routes of the API as functions. Each answers with a value or throws a Problem.

import type {
  AnswerWords,
  FileChange,
  LogRecord,
  Mode,
  Pending,
  Queued,
  Role,
  SessionLine,
  Todo,
  When,
} from "../state/model.ts";
import { keepKey, signed } from "./key.ts";
import { noAnswer, toProblem } from "./problem.ts";

export interface Me {
  readonly name: string;
  readonly role: Role;
  readonly version: string;
  readonly workspaces: readonly string[];
}

export interface SessionList {
  readonly sessions: readonly SessionLine[];
  readonly next: string;
}

export interface Grant {
  readonly id: string;
  readonly what?: string;
  readonly since?: string;
  readonly until?: string;
  readonly by?: string;
  readonly rule?: string;
}

export interface SessionDetail extends SessionLine {
  readonly todos: readonly Todo[];
  readonly pending: readonly Pending[];
  readonly queued: readonly Omit<Queued, "when">[];
  readonly context: { readonly tokens: number; readonly window: number };
  readonly limits: Readonly<Record<string, number | null>>;
  readonly metrics: Readonly<Record<string, number>>;
  readonly grants: readonly Grant[];
  readonly children: readonly string[];
}

export interface RecordPage {
  readonly records: readonly LogRecord[];
  readonly next: number;
  readonly last: number;
}

/** A file that changed after the turn; `diff` is what an overwrite would lose. */
export interface Clash {
  readonly path: string;
  readonly why: string;
  readonly diff: string;
}

/** What becomes of clashes. */
export type Clashes = "refuse" | "skip" | "overwrite";

export interface UndoPreview {
  readonly turn: number;
  readonly files: readonly { readonly path: string; readonly how?: FileChange["how"]; readonly diff?: string }[];
  readonly uncovered: readonly string[];
  readonly clashes: readonly Clash[];
  readonly token: string;
}

export interface Hit {
  readonly sessionId: string;
  readonly seq: number;
  readonly title: string;
  readonly text: string;
}

export interface Choice {
  readonly name: string;
  readonly label: string;
  readonly default: boolean;
  readonly whyNot: string;
}

export interface SessionChange {
  readonly title?: string;
  readonly tags?: readonly string[];
  readonly mode?: Mode;
  readonly provider?: string;
  readonly model?: string;
  readonly agent?: string;
}

export interface NewSession extends Omit<SessionChange, "tags"> {
  readonly workspacePath?: string;
}

/** `only`: a code of somebody else is not used. */
export type SigningIn = { readonly code: string; readonly only?: string } | { readonly token: string };

type Query = Readonly<Record<string, string | number | undefined>>;

interface Ask {
  readonly method?: string;
  readonly body?: unknown;
  readonly query?: Query;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly patience?: number; // milliseconds until the answer has to begin
}

/** For what a server that works answers at once. A line may stall without breaking. */
const QUICK = { patience: 20_000 };

/** The path with its query; empty values are left out. */
export function address(path: string, query: Query = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(pairs.map(([key, value]): [string, string] => [key, String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

async function ask(path: string, how: Ask = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...signed(), ...how.headers };
  const init: RequestInit = { method: how.method ?? "GET", headers, credentials: "same-origin", cache: "no-store" };
  if (how.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(how.body);
  }
  const late = new AbortController();
  const timer = how.patience === undefined ? undefined : setTimeout(() => late.abort(), how.patience);
  init.signal = how.signal ? AbortSignal.any([how.signal, late.signal]) : late.signal;
  const answer = await fetch(address(path, how.query), init)
    .catch((error: unknown) => {
      throw how.signal?.aborted ? error : noAnswer();
    })
    .finally(() => clearTimeout(timer));
  if (!answer.ok) throw await toProblem(answer);
  return answer;
}

async function json<T>(path: string, how: Ask = {}): Promise<T> {
  return (await (await ask(path, how)).json()) as T;
}

const of = (id: string, rest = ""): string => `/api/sessions/${encodeURIComponent(id)}${rest}`;

export const api = {
  login: (how: SigningIn) =>
    json<{ key: string }>("/api/login", { method: "POST", body: how }).then((found) => keepKey(found.key)),
  logout: () => ask("/api/logout", { method: "POST" }).then(() => keepKey("")),
  me: () => json<Me>("/api/me", QUICK),
  sessions: (query: Query) => json<SessionList>("/api/sessions", { query, ...QUICK }),
  create: (wanted: NewSession) => json<SessionLine>("/api/sessions", { method: "POST", body: wanted }),
  detail: (id: string) => json<SessionDetail>(of(id), QUICK),
  change: (id: string, change: SessionChange) => json<SessionDetail>(of(id), { method: "PATCH", body: change }),
  remove: (id: string) => ask(of(id), { method: "DELETE" }),
  chat: (id: string, prompt: string, when: When, key: string) =>
    json<{ sessionId: string; turn: number }>(of(id, "/chat"), {
      method: "POST",
      body: { prompt, when },
      headers: { "Idempotency-Key": key },
      ...QUICK,
    }),
  interrupt: (id: string) => ask(of(id, "/interrupt"), { method: "POST" }),
  withdraw: (id: string, seq: number) => ask(of(id, `/queue/${seq}`), { method: "DELETE" }),
  answer: (id: string, callId: string, shown: string, answer: AnswerWords) =>
    json<{ allowed: boolean; by: string }>(of(id, `/approvals/${encodeURIComponent(callId)}`), {
      method: "POST",
      body: { shown, ...answer },
      ...QUICK,
    }),
  records: (id: string, query: { after?: number; before?: number; limit?: number }) =>
    json<RecordPage>(of(id, "/records"), { query, ...QUICK }),
  fork: (id: string, at: number) => json<SessionLine>(of(id, "/fork"), { method: "POST", body: { at } }),
  rewind: (id: string, to: number) => json<SessionDetail>(of(id, "/rewind"), { method: "POST", body: { to } }),
  compact: (id: string) => json<SessionDetail>(of(id, "/compact"), { method: "POST" }),
  undoPreview: (id: string, turn: number) =>
    json<UndoPreview>(of(id, "/undo"), { query: { turn: turn || undefined } }),
  undo: (id: string, turn: number, token: string, clashes: Clashes) =>
    json<{ files: readonly string[]; skipped: readonly string[] }>(of(id, "/undo"), { method: "POST", body: { turn, token, clashes } }),
  grants: (id: string) => json<unknown>(of(id, "/grants")),
  revoke: (id: string, grant: string) => ask(of(id, `/grants/${encodeURIComponent(grant)}`), { method: "DELETE" }),
  files: (id: string, query: string, signal: AbortSignal) =>
    json<{ paths: readonly string[] }>(of(id, "/files"), { query: { query, limit: 20 }, signal }),
  workspaceFiles: (workspace: string, query: string, signal: AbortSignal) =>
    json<{ paths: readonly string[] }>("/api/workspaces/files", { query: { workspace, query, limit: 20 }, signal }),
  previewRule: (id: string, rule: string) =>
    json<{ calls: readonly string[] }>(of(id, "/preview-rule"), { method: "POST", body: { rule } }),
  approvals: () => json<{ approvals: readonly Pending[] }>("/api/approvals", QUICK),
  search: (q: string, signal: AbortSignal) =>
    json<{ hits: readonly Hit[] }>("/api/search", { query: { q, limit: 50 }, signal }),
  models: () => json<{ choices: readonly Choice[] }>("/api/models"),
  agents: () => json<{ choices: readonly Choice[] }>("/api/agents"),
  workspaces: () => json<{ choices: readonly Choice[] }>("/api/workspaces"),
  exported: async (id: string, format: "jsonl" | "markdown") =>
    (await ask(of(id, "/export"), { query: { format }, headers: { Accept: "*/*" } })).blob(),
  streamUrl: (id: string, after: number) => address(of(id, "/stream"), { after }),
};
