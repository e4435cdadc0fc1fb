// The one dialog that may be open, and the promise of its answer.

import { signal } from "@preact/signals";
import type { UndoPreview } from "../api/client.ts";

export type Dialog =
  | { readonly kind: "confirm"; readonly title: string; readonly text: string; readonly yes: string; readonly bad: boolean }
  | { readonly kind: "undo"; readonly preview: UndoPreview }
  | { readonly kind: "help" }
  | { readonly kind: "grants" };

export const dialog = signal<Dialog | null>(null);
let settle: ((yes: boolean) => void) | null = null;

/** True: the person said yes. One dialog at a time: a second one is a no to the first. */
export function show(next: Dialog): Promise<boolean> {
  settle?.(false);
  dialog.value = next;
  return new Promise((resolve) => {
    settle = resolve;
  });
}

export function closeDialog(yes = false): void {
  dialog.value = null;
  settle?.(yes);
  settle = null;
}

export function confirm(title: string, text: string, yes: string, bad = false): Promise<boolean> {
  return show({ kind: "confirm", title, text, yes, bad });
}
