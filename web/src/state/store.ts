// What the page knows beyond one session: who is here, all sessions, all questions, the line.

import { computed, signal } from "@preact/signals";
import type { Choice, Me } from "../api/client.ts";
import type { Pending, Role, SessionLine } from "./model.ts";

/** checking: asked the server who we are · in · out: a code is needed (`why` says why). */
export type Gate =
  | { readonly at: "checking" }
  | { readonly at: "in"; readonly me: Me }
  | { readonly at: "out"; readonly why: "none" | "used" | "wrong" | "expired" | "left" | "silent"; readonly detail: string };

export const gate = signal<Gate>({ at: "checking" });
export const me = computed<Me | null>(() => (gate.value.at === "in" ? gate.value.me : null));
export const role = computed<Role>(() => me.value?.role ?? "watch");

const RANK: readonly Role[] = ["watch", "answer", "drive", "admin"];
export const may = (needed: Role): boolean => RANK.indexOf(role.value) >= RANK.indexOf(needed);

export const sessions = signal<ReadonlyMap<string, SessionLine>>(new Map());
export const cursor = signal(""); // of the page of older sessions
export const listed = signal(false); // the first page is there
export const pendings = signal<readonly Pending[]>([]);
export const current = signal(""); // the session that is shown
export const target = signal(0); // the record to scroll to in it

export interface Choices {
  readonly models: readonly Choice[];
  readonly agents: readonly Choice[];
  readonly workspaces: readonly Choice[];
}
export const choices = signal<Choices>({ models: [], agents: [], workspaces: [] });

export const currentLine = computed(() => sessions.value.get(current.value) ?? null);

/** A line that came out of order is older than what is known. */
export function putLines(lines: readonly SessionLine[]): void {
  const known = new Map(sessions.value);
  for (const line of lines) {
    const before = known.get(line.id);
    if (!before || before.seq <= line.seq) known.set(line.id, line);
  }
  sessions.value = known;
}

export function dropLine(id: string): void {
  const known = new Map(sessions.value);
  known.delete(id);
  sessions.value = known;
}

// ---- the line to the server, and what is said of it

export type LineState = "live" | "broken" | "back" | "stopping";
export const line = signal<LineState>("live");
const broken = new Set<string>();
let later: ReturnType<typeof setTimeout> | undefined;

/** Each stream says how it is; the person hears of it once, and not of a blink. */
export function lineIs(who: string, whole: boolean): void {
  const before = broken.size;
  if (whole) broken.delete(who);
  else broken.add(who);
  if (broken.size > 0 && before === 0) {
    clearTimeout(later);
    later = setTimeout(() => (line.value = "broken"), 300);
  } else if (broken.size === 0 && before > 0) {
    clearTimeout(later);
    if (line.value === "live") return;
    line.value = "back";
    later = setTimeout(() => (line.value = "live"), 4000);
  }
}

/** The server has said that it stops: the streams end next. */
export function lineStops(): void {
  clearTimeout(later);
  line.value = "stopping";
}

export function lineForgets(who: string): void {
  if (broken.has(who)) lineIs(who, true);
}

// ---- thin lines at the bottom

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "quiet" | "bad";
}
export const toasts = signal<readonly Toast[]>([]);
let counted = 0;

export function say(text: string, tone: "quiet" | "bad" = "quiet"): void {
  const toast = { id: (counted += 1), text, tone };
  toasts.value = [...toasts.value.filter((one) => one.text !== text).slice(-3), toast];
  if (tone === "quiet") setTimeout(() => hush(toast.id), 5000);
}

export function hush(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}
