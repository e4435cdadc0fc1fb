// Figures and times as a person reads them. Pure.

import type { SessionLine, State } from "../state/model.ts";
import { oneLine } from "../text/neutral.ts";
import { formatCost } from "../text/words.ts";

/** What was spent; nothing before the first reply. */
export function spent(cost: number, unpriced: number, tokens: number): string {
  return cost === 0 && unpriced === 0 && tokens === 0 ? "" : formatCost(cost, unpriced);
}

export function thousands(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  if (tokens < 100_000) return `${(tokens / 1000).toFixed(1).replace(/\.0$/, "")}k`;
  return tokens < 1_000_000 ? `${Math.round(tokens / 1000)}k` : `${(tokens / 1_000_000).toFixed(1)}M`;
}

export function ago(stamp: string, now: number): string {
  const seconds = (now - Date.parse(stamp)) / 1000;
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 45) return "now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h`;
  if (seconds < 86_400 * 14) return `${Math.round(seconds / 86_400)} d`;
  return new Date(stamp).toLocaleDateString(undefined, { day: "numeric", month: "short", year: "2-digit" });
}

const STATES: Readonly<Record<State, string>> = {
  idle: "new",
  running: "running",
  waiting: "needs approval",
  done: "done",
  failed: "failed",
};

const REASONS: Readonly<Record<string, string>> = {
  interrupted: "stopped",
  budget: "limit reached",
  timeout: "took too long",
  stuck: "repeated itself",
  max_tokens: "cut off",
};

/** How a turn ended. */
export function endWords(reason: string): string {
  return REASONS[reason] ?? reason;
}

export function stateWords(line: SessionLine): string {
  if (line.state === "failed" || line.state === "done") return REASONS[line.reason] ?? STATES[line.state];
  return STATES[line.state];
}

export function titleOf(line: Pick<SessionLine, "title" | "id">): string {
  return oneLine(line.title, 200) || "Untitled session";
}

/** The last names of a path: what tells it from others. */
export function folderOf(path: string): string {
  return oneLine(path.split("/").filter(Boolean).slice(-1)[0] ?? path, 80);
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}
