// Keys that answer a question. A key that was meant for something else, typed ahead or held down,
// answers nothing: a question must have had the focus for a moment before a key counts.

import { useEffect, useRef } from "preact/hooks";

export const MOMENT = 500; // milliseconds

/** May this key answer now? `since` is when the question got the focus. */
export function counts(event: KeyboardEvent, since: number, now: number): boolean {
  if (event.repeat || event.isComposing) return false;
  return since > 0 && now - since >= MOMENT;
}

export type Keys = Readonly<Record<string, (() => void) | undefined>>;
export interface Box {
  readonly current: HTMLElement | null;
}

/** The keys of a question, while it has the focus: `keys` says what each of them does now. */
export function useKeys(box: Box, keys: Keys): void {
  const known = useRef(keys);
  known.current = keys;
  useEffect(() => (box.current ? listen(box.current, known) : undefined), []);
}

function listen(node: HTMLElement, keys: { readonly current: Keys }): () => void {
  let since = node.contains(document.activeElement) ? performance.now() : 0;
  const came = () => {
    if (since === 0) since = performance.now();
  };
  const went = (event: FocusEvent) => {
    if (!node.contains(event.relatedTarget as Node | null)) since = 0;
  };
  const pressed = (event: KeyboardEvent) => {
    const act = keys.current[event.key.toLowerCase()];
    if (!act || (event.target as Element).closest("input, textarea")) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault(); // whether it counts or not, here it means nothing else
    event.stopPropagation();
    if (counts(event, since, performance.now())) act();
    else since = performance.now(); // somebody is still typing: the moment begins anew
  };
  node.addEventListener("focusin", came);
  node.addEventListener("focusout", went);
  node.addEventListener("keydown", pressed);
  return () => {
    node.removeEventListener("focusin", came);
    node.removeEventListener("focusout", went);
    node.removeEventListener("keydown", pressed);
  };
}
