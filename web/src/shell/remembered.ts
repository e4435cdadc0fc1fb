// Prompts that were sent before, for the arrow keys: this session's, then this browser's. Pure folds.

import { keep, kept } from "./keeping.ts";

const MOST = 100;

export class Remembered {
  private readonly all: readonly string[]; // the oldest first
  private at: number;
  private readonly draft: string;

  constructor(all: readonly string[], draft: string) {
    this.all = all;
    this.at = all.length;
    this.draft = draft;
  }

  /** One back or forth; null at either end. After the newest comes what was being written. */
  move(by: -1 | 1): string | null {
    const next = this.at + by;
    if (next < 0 || next > this.all.length) return null;
    this.at = next;
    return next === this.all.length ? this.draft : (this.all[next] ?? "");
  }
}

/** Each prompt once, where it was said last. */
export function once(...lists: readonly (readonly string[])[]): readonly string[] {
  const found = new Set<string>();
  for (const text of lists.flat()) {
    if (!text.trim()) continue;
    found.delete(text);
    found.add(text);
  }
  return [...found];
}

export function sentBefore(): readonly string[] {
  try {
    const found: unknown = JSON.parse(kept("sent") || "[]");
    return Array.isArray(found) ? found.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export function remember(text: string): void {
  keep("sent", JSON.stringify(once(sentBefore(), [text.slice(0, 4000)]).slice(-MOST)));
}
