// The chat's routes as functions. Each answers with a value or throws a Problem.

import { noAnswer, Problem, toProblem } from "../../src/api/problem.ts";
import { type SseEvent, SseParser } from "../../src/api/sse.ts";
import type { components } from "./schema.ts";

type Schemas = components["schemas"];

export type Me = Schemas["Me"];
export type About = Schemas["About"];
export type Conversation = Schemas["ConversationView"];
export type Said = Schemas["MessageView"];
export type Task = Schemas["TaskView"];
export type Tasks = Schemas["Tasks"];
export type Wanted = Required<Schemas["Message"]>;
export type MessagePage = Schemas["ConversationPage"];

export interface Who {
  readonly token: string;
  readonly user: string;
}

interface Ask {
  readonly method?: string;
  readonly body?: unknown;
  readonly accept?: string;
  readonly key?: string;
  readonly signal?: AbortSignal;
}

async function ask(token: string, path: string, how: Ask = {}): Promise<Response> {
  const headers: Record<string, string> = {
    Accept: how.accept ?? "application/json",
  };
  if (token) headers["Authorization"] = `Bearer ${token}`;
  const init: RequestInit = { method: how.method ?? "GET", headers, credentials: "omit", cache: "no-store" };
  if (how.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(how.body);
  }
  if (how.key) headers["Idempotency-Key"] = how.key;
  if (how.signal) init.signal = how.signal;
  const answer = await fetch(path, init).catch((error: unknown) => {
    throw how.signal?.aborted ? error : noAnswer();
  });
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

/** A problem, with the seconds after which the server says that it may be tried again (`wait`). */
async function refusal(answer: Response): Promise<Problem> {
  const found = await toProblem(answer);
  const wait = Number(answer.headers.get("Retry-After")) || 0;
  return new Problem(found.status, found.code, found.message, found.hint, { ...found.more, wait });
}

const of = (who: Who, rest: string): string => `/api/${encodeURIComponent(who.user)}/${rest}`;
const after = (cursor: string): string => (cursor ? `&cursor=${encodeURIComponent(cursor)}` : "");

async function json<T>(answer: Promise<Response>): Promise<T> {
  return (await (await answer).json()) as T;
}

export const api = {
  about: () => json<About>(ask("", "/api/chat/about")),
  me: (token: string) => json<Me>(ask(token, "/api/chat/me")),
  conversations: (who: Who, cursor = "") =>
    json<Schemas["Conversations"]>(
      ask(who.token, of(who, `conversations?limit=30${after(cursor)}`)),
    ),
  messages: (who: Who, id: string, cursor = "") =>
    json<MessagePage>(
      ask(who.token, of(who, `conversations/${encodeURIComponent(id)}?limit=50${after(cursor)}`)),
    ),
  remove: (who: Who, id: string) =>
    ask(who.token, of(who, `conversations/${encodeURIComponent(id)}`), { method: "DELETE" }),
  say: (who: Who, body: Wanted, key: string) =>
    ask(who.token, of(who, "chat"), { method: "POST", body, key, accept: "text/event-stream" }),
  live: (who: Who, signal: AbortSignal) =>
    ask(who.token, of(who, "tasks/events"), { accept: "text/event-stream", signal }),
};

/** The events of an answer, one after the other. */
export async function* events(answer: Response): AsyncGenerator<SseEvent> {
  if (!answer.body) throw noAnswer();
  const parser = new SseParser();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const piece = await reader.read().catch(() => {
        throw noAnswer();
      });
      if (piece.done) return;
      yield* parser.feed(piece.value);
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

/** A problem that came inside of a stream. */
export function problemOf(said: Record<string, unknown>): Problem {
  const text = (key: string): string => (typeof said[key] === "string" ? (said[key] as string) : "");
  return new Problem(Number(said["status"]) || 500, text("code"), text("detail"), text("hint"));
}
