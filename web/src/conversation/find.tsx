// To find words in the conversation: most of it is not in the page, so the browser's own search
// would not see it. What is found is marked without touching the text.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { textOf, type Entry } from "./entries.ts";

interface FindProps {
  readonly entries: readonly Entry[];
  readonly more: boolean; // is there something older that is not loaded?
  readonly loadOlder: () => void;
  readonly show: (key: string) => void;
  readonly node: (key: string) => HTMLElement | null;
  readonly close: () => void;
}

/** The keys of the entries in which the words stand. */
export function found(entries: readonly Entry[], words: string): string[] {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  return entries.filter((entry) => textOf(entry).toLowerCase().includes(wanted)).map((entry) => entry.key);
}

/** The bar with the field. */
export function Find({ entries, more, loadOlder, show, node, close }: FindProps): JSX.Element {
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const hits = useMemo(() => found(entries, words), [entries, words]);
  useLayoutEffect(() => field.current?.focus(), []);
  useEffect(() => () => paint([], ""), []);
  const go = (step: number) => {
    if (hits.length === 0) return;
    const next = (at + step + hits.length) % hits.length;
    setAt(next);
    show(hits[next]!);
  };
  useEffect(() => {
    const newest = hits.length - 1; // what was said last is nearest
    setAt(Math.max(0, newest));
    if (newest >= 0) show(hits[newest]!);
  }, [words]);
  useEffect(() => {
    const frame = requestAnimationFrame(() => paint(hits.map(node), words.trim()));
    return () => cancelAnimationFrame(frame);
  });
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "Enter") go(event.shiftKey ? 1 : -1);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const told = words.trim() ? (hits.length > 0 ? `${at + 1} of ${hits.length}` : "not found") : "";
  const unsearched = told && more ? ", older records not searched" : "";
  return (
    <div class="find" role="search" aria-label="Find in this conversation">
      <input
        ref={field} type="search" aria-label="Find in this conversation" placeholder="Find in this conversation" value={words}
        onInput={(event) => setWords(event.currentTarget.value)} onKeyDown={pressed}
      />
      <span class="find-told" role="status">{told}{unsearched}</span>
      <button type="button" class="quiet" aria-label="The one before" onClick={() => go(-1)}>↑</button>
      <button type="button" class="quiet" aria-label="The next one" onClick={() => go(1)}>↓</button>
      {more && <button type="button" class="quiet" onClick={loadOlder}>Search older</button>}
      <button type="button" class="quiet" aria-label="Close the search" onClick={close}>✕</button>
    </div>
  );
}

const NAME = "bridle-found";
const MOST = 500;

/** Marks the words in what is in the page. Where the browser cannot, the entry alone is marked. */
function paint(nodes: readonly (HTMLElement | null)[], words: string): void {
  const marks = (globalThis as { CSS?: { highlights?: Map<string, unknown> } }).CSS?.highlights;
  if (!marks || typeof Highlight === "undefined") return;
  marks.delete(NAME);
  if (!words) return;
  const ranges = nodes.filter((node) => node !== null).flatMap((node) => rangesIn(node, words.toLowerCase()));
  if (ranges.length > 0) marks.set(NAME, new Highlight(...ranges.slice(0, MOST)));
}

function rangesIn(node: HTMLElement, words: string): Range[] {
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const lower = (text.nodeValue ?? "").toLowerCase();
    for (let at = lower.indexOf(words); at >= 0; at = lower.indexOf(words, at + words.length)) {
      const range = new Range();
      range.setStart(text, at);
      range.setEnd(text, at + words.length);
      ranges.push(range);
    }
  }
  return ranges;
}
