// The routes of the API as functions. Each answers with a value or throws a Problem.

import type { AnswerWords, LogRecord, Pending, When } from "../state/model.ts";
import { keepKey, signed } from "./key.ts";
import { noAnswer, toProblem } from "./problem.ts";
import type { components } from "./schema.ts";

type Schemas = components["schemas"];

export type Me = Schemas["CallerInfo"];
export type SessionLine = Schemas["SessionInfo"];
export type SessionList = Schemas["SessionPage"];
export type SessionDetail = Omit<Schemas["SessionDetail"], "pending"> & { readonly pending: readonly Pending[] };
export type Grant = Schemas["Grant"];
export type RecordPage = Omit<Schemas["RecordPage"], "records"> & { readonly records: readonly LogRecord[] };
export type Clash = Schemas["UndoConflict"];
export type Clashes = NonNullable<Schemas["UndoRequest"]["clashes"]>;
export type UndoPreview = Schemas["UndoPreview"];
export type Hit = Schemas["SearchHit"];
export type Choice = Schemas["Choice"];
export type SessionChange = Schemas["SessionUpdate"];
export type NewSession = Schemas["NewSession"];
export type SigningIn = Schemas["SigningIn"];

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
    json<Schemas["SignedIn"]>("/api/login", { method: "POST", body: how }).then((found) => keepKey(found.key)),
  logout: () => ask("/api/logout", { method: "POST" }).then(() => keepKey("")),
  me: () => json<Me>("/api/me", QUICK),
  sessions: (query: Query) => json<SessionList>("/api/sessions", { query, ...QUICK }),
  create: (wanted: NewSession) => json<SessionLine>("/api/sessions", { method: "POST", body: wanted }),
  detail: (id: string) => json<SessionDetail>(of(id), QUICK),
  change: (id: string, change: SessionChange) => json<SessionDetail>(of(id), { method: "PATCH", body: change }),
  remove: (id: string) => ask(of(id), { method: "DELETE" }),
  chat: (id: string, prompt: string, when: When, key: string) =>
    json<Schemas["PromptAccepted"]>(of(id, "/chat"), {
      method: "POST",
      body: { prompt, when },
      headers: { "Idempotency-Key": key },
      ...QUICK,
    }),
  interrupt: (id: string) => ask(of(id, "/interrupt"), { method: "POST" }),
  withdraw: (id: string, seq: number) => ask(of(id, `/queue/${seq}`), { method: "DELETE" }),
  answer: (id: string, callId: string, shown: string, answer: AnswerWords) =>
    json<Schemas["ApprovalOutcome"]>(of(id, `/approvals/${encodeURIComponent(callId)}`), {
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
    json<Schemas["UndoResult"]>(of(id, "/undo"), { method: "POST", body: { turn, token, clashes } }),
  grants: (id: string) => json<Schemas["Grants"]>(of(id, "/grants")),
  revoke: (id: string, grant: string) => ask(of(id, `/grants/${encodeURIComponent(grant)}`), { method: "DELETE" }),
  files: (id: string, query: string, signal: AbortSignal) =>
    json<Schemas["FilePaths"]>(of(id, "/files"), { query: { query, limit: 20 }, signal }),
  workspaceFiles: (workspace: string, query: string, signal: AbortSignal) =>
    json<Schemas["FilePaths"]>("/api/workspaces/files", { query: { workspace, query, limit: 20 }, signal }),
  previewRule: (id: string, rule: string) =>
    json<Schemas["RulePreview"]>(of(id, "/preview-rule"), { method: "POST", body: { rule } }),
  approvals: () => json<{ approvals: readonly Pending[] }>("/api/approvals", QUICK),
  search: (q: string, signal: AbortSignal) =>
    json<Schemas["SearchHits"]>("/api/search", { query: { q, limit: 50 }, signal }),
  models: () => json<Schemas["Choices"]>("/api/models"),
  agents: () => json<Schemas["Choices"]>("/api/agents"),
  workspaces: () => json<Schemas["Choices"]>("/api/workspaces"),
  exported: async (id: string, format: "jsonl" | "markdown") =>
    (await ask(of(id, "/export"), { query: { format }, headers: { Accept: "*/*" } })).blob(),
  streamUrl: (id: string, after: number) => address(of(id, "/stream"), { after }),
};
