// Keys that answer an approval. They count only while it has the focus and its heading and all its
// buttons can be seen, and not in the first moment: a key that was meant for something else, typed
// ahead or held down, answers nothing.

import { useEffect, useRef } from "preact/hooks";
import { isText } from "../text/keyboard.ts";

export const MOMENT = 500; // milliseconds

/** May this key answer now? `since` is when the approval got the focus. */
export function counts(event: KeyboardEvent, since: number, now: number): boolean {
  if (event.repeat || event.isComposing) return false;
  return since > 0 && now - since >= MOMENT;
}

export type Keys = Readonly<Record<string, (() => void) | undefined>>;
export interface Box {
  readonly current: HTMLElement | null;
}

let unasked: Element | null = null; // the approval that got the focus without anybody's doing

/** Focus an approval that has just arrived. What is typed in the first moment still goes to the composer. */
export function focusUnasked(node: HTMLElement): void {
  node.focus({ preventScroll: true });
  unasked = node;
}

/** The keys of an approval, while it has the focus: `keys` says what each of them does now. */
export function useKeys(box: Box, keys: Keys): void {
  const known = useRef(keys);
  known.current = keys;
  useEffect(() => (box.current ? listen(box.current, known) : undefined), []);
}

/** Can these be seen whole: not scrolled away, and nothing in front of them? */
function areShown(nodes: Iterable<Element>): boolean {
  return [...nodes].every((node) => {
    const { left, right, top, bottom } = node.getBoundingClientRect();
    const corners = [left + 3, right - 3].flatMap((x) => [top + 3, bottom - 3].map((y) => [x, y] as const));
    return corners.every(([x, y]) => {
      const seen = document.elementFromPoint(x, y);
      return seen !== null && node.contains(seen);
    });
  });
}

/** Can the heading and all buttons that have keys be seen? */
function isShown(box: HTMLElement): boolean {
  return areShown(box.querySelectorAll(".question-head, [aria-keyshortcuts]"));
}

function listen(node: HTMLElement, keys: { readonly current: Keys }): () => void {
  let since = node.contains(document.activeElement) ? performance.now() : 0;
  const came = (event: FocusEvent) => {
    if (since !== 0) return;
    since = performance.now();
    unasked = null;
    const byKey = (event.target as Element).matches(":focus-visible"); // under the mouse nothing may move
    if (byKey && !isShown(node)) node.scrollIntoView({ block: "nearest" });
  };
  const went = (event: FocusEvent) => {
    if (!node.contains(event.relatedTarget as Node | null)) since = 0;
  };
  const show = (event: KeyboardEvent) => {
    take(event, () => node.scrollIntoView({ block: "nearest" }));
    since = performance.now();
  };
  /** Whether it answers or not, the key means nothing else here. */
  const take = (event: KeyboardEvent, act: (() => void) | false | undefined) => {
    event.preventDefault();
    event.stopPropagation();
    if (act) act();
  };
  /** Text belongs to the field of an approval that has one. */
  const write = (event: KeyboardEvent) => {
    const field = node.querySelector("textarea");
    if (!field || !isText(event) || event.key === " ") return;
    if (unasked === node && !counts(event, since, performance.now())) return;
    event.stopPropagation();
    field.focus(); // the browser then writes it there
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as Element;
    const button = target.closest("button");
    if (button && (event.key === "Enter" || event.key === " ") && !areShown([button])) return show(event);
    if (target.closest("input, textarea")) return;
    const name = event.key.toLowerCase();
    const act = keys.current[name];
    if (!(name in keys.current)) return write(event);
    if (name === "escape") return act ? take(event, act) : undefined; // closes a form, answers nothing
    const inTime = counts(event, since, performance.now());
    if (!inTime && !event.repeat && unasked === node) return; // it is text: the composer gets it
    if (!isShown(node)) return show(event);
    take(event, inTime && act);
    if (!inTime) since = performance.now(); // somebody is still typing: the moment begins anew
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
