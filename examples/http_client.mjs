// A client of `bridle serve` without dependencies: a REPL over HTTP and server-sent events.
//
//   node http_client.mjs http://127.0.0.1:8420 [SESSION]      (Node 18 or newer)
//
// It reads the token from BRIDLE_TOKEN; `bridle serve --show-token` prints yours. Without SESSION,
// it creates a new session. It asks you about approval requests; if several people answer, the
// first answer wins.

import { createInterface } from "node:readline/promises";
import { randomUUID } from "node:crypto";

const [base = "http://127.0.0.1:8420", wanted] = process.argv.slice(2);
const headers = { authorization: `Bearer ${process.env.BRIDLE_TOKEN ?? ""}` };

/** Send a request. If the server returns a problem, throw it as an error with its code. */
async function ask(method, path, body, more = {}) {
  const answer = await fetch(new URL(path, base), {
    method,
    headers: { ...headers, ...more, ...(body && { "content-type": "application/json" }) },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  const found = text ? JSON.parse(text) : {};
  if (!answer.ok) throw Object.assign(new Error(found.detail ?? answer.statusText), found);
  return found;
}

/** Parse chunks of server-sent events into blocks {id, event, data}. */
export async function* blocks(chunks) {
  let held = "";
  for await (const chunk of chunks) {
    held += chunk;
    // A \r at the end may be the first half of \r\n, so wait for the next chunk.
    const whole = held.endsWith("\r") ? held.slice(0, -1) : held;
    const parts = whole.split(/\r\n\r\n|\n\n|\r\r/);
    held = parts.pop() + held.slice(whole.length);
    for (const part of parts) {
      const block = { id: undefined, event: "message", data: undefined };
      for (const line of part.split(/\r\n|\n|\r/)) {
        const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
        if (field === "data") block.data = block.data === undefined ? value : `${block.data}\n${value}`;
        else if (field === "event" || field === "id") block[field] = value;
      }
      if (block.data !== undefined || block.id !== undefined) yield block;
    }
  }
}

/** Yield each record after `seen` once, without end. If the stream breaks, resume it by Last-Event-ID. */
async function* records(session, seen, tell) {
  let settled = seen; // the newest durable record, from which the stream can be resumed
  for (let broken = 0; ; broken += 1) {
    try {
      const answer = await fetch(new URL(`/api/sessions/${session}/stream`, base), {
        headers: { ...headers, "last-event-id": String(settled) },
      });
      if (answer.status === 404 || answer.status === 401) throw Object.assign(new Error(answer.statusText), { final: true });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      if (broken) tell("connected again");
      broken = 0;
      for await (const { id, event, data } of blocks(answer.body.pipeThrough(new TextDecoderStream()))) {
        if (event === "resync") break;
        if (data !== undefined && event !== "stopping") {
          const record = JSON.parse(data);
          if (record.seq > seen) {
            seen = record.seq;
            yield { ...record, name: event };
          }
        }
        if (id) settled = Number(id);
      }
    } catch (problem) {
      if (problem.final) throw problem;
      if (!broken) tell(`the stream broke (${problem.message}); trying again`);
    }
    await new Promise((go) => setTimeout(go, Math.min(5000, 200 * 2 ** Math.min(broken, 5))));
  }
}

const terminal = createInterface({ input: process.stdin, output: process.stdout });
const say = (text) => process.stdout.write(text);
// What a model or a tool wrote must not steer the terminal.
const plain = (text) => String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "�");

/** Ask the person to approve a call. `gone` withdraws the request if somebody else has answered. */
async function question(session, asked, gone) {
  const { call, shown, reason } = asked;
  say(`\n? ${plain(call.name)} ${plain(JSON.stringify(call.arguments))}\n  why: ${plain(reason)}\n`);
  let line;
  try {
    line = await terminal.question("  allow? [y/N] ", { signal: gone });
  } catch {
    return; // answered elsewhere; the stream reports who answered
  }
  const allowed = /^y(es)?$/i.test(line.trim());
  const body = { allowed, shown, word: allowed ? "" : line.trim().replace(/^n(o)?$/i, "") };
  await ask("POST", `/api/sessions/${session}/approvals/${encodeURIComponent(call.id)}`, body).catch((no) =>
    say(`  ${plain(no.message)}\n`),
  );
}

/** Show what happens in a session from now on. Call `ended` for each turn that ends. */
async function show(session, ended) {
  const open = new Map(); // the approval requests being asked here, by fingerprint
  const put = (asked) => {
    const gone = new AbortController();
    open.set(asked.shown, gone);
    void question(session.id, asked, gone.signal);
  };
  for (const { asked } of session.pending) put(asked);
  for await (const { name, data } of records(session.id, session.seq, (text) => say(`\n· ${text}\n`))) {
    if (name === "text_delta") say(plain(data.text));
    else if (name === "tool_call") say(`\n• ${plain(data.call.name)} ${plain(JSON.stringify(data.call.arguments))}\n`);
    else if (name === "approval_required") put(data);
    else if (name === "approval_answered") {
      open.get(data.shown)?.abort();
      open.delete(data.shown);
      say(`\n  ${data.allowed ? "allowed" : "refused"} by ${plain(data.by ?? "me")}\n`);
    } else if (name === "completed" || name === "error") {
      if (name === "error") say(`\n! ${plain(data.detail || data.reason)}\n`);
      for (const gone of open.values()) gone.abort();
      open.clear();
      ended(data.turn);
    }
  }
}

async function main() {
  const { id } = wanted
    ? await ask("POST", `/api/sessions/${encodeURIComponent(wanted)}/resume`, {})
    : await ask("POST", "/api/sessions", {});
  const session = await ask("GET", `/api/sessions/${id}`);
  say(`${id} · ${session.model} · ${session.workspace}\n`);
  const over = new Map();
  const turns = new Set();
  void show(session, (turn) => (turns.add(turn), over.get(turn)?.())).catch((problem) => {
    say(`\n! ${problem.message}\n`);
    process.exit(1);
  });
  terminal.on("close", () => process.exit(0));
  for (;;) {
    say("\n\n"); // readline clears the line on which it asks
    const prompt = (await terminal.question("> ")).trim();
    if (!prompt) continue;
    try {
      const key = { "idempotency-key": randomUUID() };
      const { turn } = await ask("POST", `/api/sessions/${id}/chat`, { prompt, queue: true }, key);
      if (!turns.has(turn)) await new Promise((done) => over.set(turn, done));
    } catch (problem) {
      say(`! ${plain(problem.message)}\n${problem.hint ? `  → ${plain(problem.hint)}\n` : ""}`);
    }
  }
}

if (import.meta.filename === process.argv[1] || process.argv[1]?.endsWith("http_client.mjs")) await main();
