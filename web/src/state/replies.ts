// Folds of what the model says: deltas grow an item, and the whole reply puts it right.

import { newCall } from "./calls.ts";
import type { Draft } from "./draft.ts";
import type { Attachment, Item, LogRecord, Media, TextItem, ThinkingItem } from "./model.ts";
import { type Fields, beginning, count, fields, list, words } from "./reading.ts";

type Said = TextItem | ThinkingItem;

export function grow(draft: Draft, record: LogRecord, kind: "text" | "thinking"): void {
  const more = words(record.data["text"]);
  const place = draft.open[draft.open.length - 1];
  const item = place === undefined ? undefined : draft.items[place];
  if (place !== undefined && item?.kind === kind && item.streaming) {
    draft.items[place] = { ...item, text: item.text + more };
    return;
  }
  settle(draft);
  draft.open.push(draft.add(said(draft, record, kind, more, true)));
}

function said(draft: Draft, record: LogRecord, kind: "text" | "thinking", text: string, streaming: boolean): Said {
  const common = draft.common(kind, record.seq, record.timestamp);
  return kind === "text"
    ? { ...common, kind, text, streaming, model: draft.model, forkAt: 0 }
    : { ...common, kind, text, streaming };
}

/** Nothing streams any more of what the reply has so far. */
export function settle(draft: Draft): void {
  for (const place of draft.open) {
    const item = draft.items[place];
    if (item && "streaming" in item && item.streaming) draft.items[place] = { ...item, streaming: false };
  }
}

/** The reply broke off and is asked for again: mark what came of it. */
export function discard(draft: Draft): void {
  settle(draft);
  for (const place of draft.open) {
    const item = draft.items[place];
    if (item) draft.items[place] = { ...item, discarded: true };
  }
  draft.open = [];
}

/** The parts of a message, whichever way the log has them. */
export function parts(data: Fields): readonly Fields[] {
  const whole = list(data["parts"]).map(fields);
  if (whole.length > 0) return whole;
  const text = words(data["content"]);
  const calls = list(data["toolCalls"]).map(fields);
  return text ? [{ type: "text", text }, ...calls] : calls;
}

/** A reply is over: its message says what it was, in its own order. */
export function complete(draft: Draft, record: LogRecord): void {
  settle(draft);
  const spare: Record<string, number[]> = { text: places(draft, "text"), thinking: places(draft, "thinking") };
  const model = words(record.data["model"]) || draft.model;
  for (const part of parts(record.data)) {
    const kind = words(part["type"]) || "tool_call";
    if (kind === "text" || kind === "thinking") {
      put(draft, record, kind, words(part["text"]), spare[kind]!.shift());
    } else if (kind === "tool_call") {
      newCall(draft, record, part);
    }
  }
  for (const place of draft.open) {
    const item = draft.items[place];
    if (item?.kind === "text") draft.items[place] = { ...item, model, forkAt: record.seq };
  }
  const first = draft.open.map((place) => draft.items[place]).find((item) => item?.kind === "text");
  if (first?.kind === "text") {
    draft.mark({ seq: record.seq, at: record.timestamp, kind: "reply", label: beginning(first.text) });
  }
  draft.open = [];
}

function places(draft: Draft, kind: Item["kind"]): number[] {
  return draft.open.filter((place) => draft.items[place]?.kind === kind);
}

function put(draft: Draft, record: LogRecord, kind: "text" | "thinking", text: string, place?: number): void {
  if (place === undefined) {
    if (text.trim()) draft.open.push(draft.add(said(draft, record, kind, text, false)));
    return;
  }
  const item = draft.items[place];
  if (item?.kind === kind && text && item.text !== text) draft.items[place] = { ...item, text };
}

export function media(found: readonly Fields[]): readonly Attachment[] {
  return found
    .filter((part) => part["type"] === "image" || part["type"] === "file")
    .map(
      (part): Media => ({
        type: part["type"] === "image" ? "image" : "file",
        mediaType: words(part["mediaType"]),
        data: words(part["data"]),
        url: words(part["url"]),
        name: words(part["name"]),
      }),
    );
}

/** A prompt came; it waits until a message brings it into the conversation. */
export function queue(draft: Draft, record: LogRecord): void {
  const data = record.data;
  const when = data["when"] === "queue" || data["when"] === "next_step" ? data["when"] : "idle";
  const found = list(data["parts"]).map(fields);
  const prompt = words(data["content"]) || joined(found);
  const one = { seq: record.seq, prompt, by: words(data["by"], "me"), turn: count(data["turn"]), when } as const;
  draft.queued = [...draft.queued.filter((other) => other.seq !== one.seq), one];
}

export function joined(found: readonly Fields[]): string {
  return found.map((part) => (part["type"] === "text" ? words(part["text"]) : "")).join("");
}
