// Colours for code. The highlighter and its languages are loaded when the first code block comes,
// so that the page's first load stays small. What it makes passes the sanitiser like everything.

import { signal } from "@preact/signals";
import { sanitise } from "./sanitise.ts";
import type { Highlighter } from "./languages.ts";

const LARGEST = 60_000; // characters

/** Is true once code can be coloured; components that show code read it. */
export const canHighlight = signal(false);

let highlighter: Highlighter | null = null;
let asked = false;

/** The coloured nodes, or null where there are none (yet). Asks for the highlighter by itself. */
export function highlighted(code: string, language: string): DocumentFragment | null {
  if (highlighter === null) {
    load();
    return null;
  }
  if (code.length > LARGEST || !highlighter.getLanguage(language)) return null;
  return sanitise(highlighter.highlight(code, { language, ignoreIllegals: true }).value);
}

function load(): void {
  if (asked) return;
  asked = true;
  void import("./languages.ts").then(
    (found) => {
      highlighter = found.highlighter;
      canHighlight.value = true;
    },
    () => (asked = false), // offline for a moment: the next code block asks again
  );
}
