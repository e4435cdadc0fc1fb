// The one dialog that may be open, and the promise of its answer.

import { signal } from "@preact/signals";
import type { UndoPreview } from "../api/client.ts";

export type Dialog =
  | { readonly kind: "confirm"; readonly title: string; readonly text: string; readonly yes: string; readonly bad: boolean }
  | { readonly kind: "undo"; readonly preview: UndoPreview }
  | { readonly kind: "help" }
  | { readonly kind: "grants" };

export const dialog = signal<Dialog | null>(null);
/** The button that was pressed; "" is no. */
export type Pressed = "" | "yes" | "skip" | "overwrite";
let settle: ((pressed: Pressed) => void) | null = null;

/** What the person answers. One dialog at a time: a second one is a no to the first. */
export function show(next: Dialog): Promise<Pressed> {
  settle?.("");
  dialog.value = next;
  return new Promise((resolve) => {
    settle = resolve;
  });
}

export function closeDialog(pressed: Pressed = ""): void {
  dialog.value = null;
  settle?.(pressed);
  settle = null;
}

export async function confirm(title: string, text: string, yes: string, bad = false): Promise<boolean> {
  return (await show({ kind: "confirm", title, text, yes, bad })) === "yes";
}
