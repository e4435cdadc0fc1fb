// The keyboard: everything that can be done can be done with it.

import { actions, stop } from "../state/actions.ts";
import { dialog, show } from "../state/dialogs.ts";
import { opened } from "../state/living.ts";
import { goTo } from "../state/route.ts";
import { gate, may } from "../state/store.ts";
import { focus } from "./focus.ts";
import { closeTopmost, listOpen, toggleDetails, toggleTimeline, trayOpen } from "./rooms.ts";
import { step } from "./Sessions.tsx";
import { nextTheme } from "./theme.ts";

type Key = readonly [string, string];

export const KEYS: readonly (readonly [string, readonly Key[]])[] = [
  ["Go to", [
    ["j", "the next session"],
    ["k", "the session before"],
    ["/", "search"],
    ["a", "what waits for you"],
    ["q", "the question that waits longest"],
    ["Ctrl+F", "a search in the conversation; again: the browser's"],
    ["g i", "the composer"],
    ["g l", "the list of sessions"],
    ["g c", "the conversation"],
    ["n", "a new session"],
  ]],
  ["Do", [
    ["Esc", "close what lies on top; stop the turn, after a question; leave a field"],
    ["u", "undo, with a preview"],
    ["f", "fork from the end"],
    ["m", "the mode"],
    ["t", "the timeline"],
    ["d", "the details"],
    [".", "light, dark or as the system"],
    ["?", "these keys"],
  ]],
  ["Answer a question", [
    ["y", "yes, once"],
    ["s", "yes, for this session"],
    ["r", "yes, as a rule"],
    ["n", "no"],
    ["w", "no, with a word"],
  ]],
  ["Write", [
    ["Enter", "sends; queues while a turn runs"],
    ["Ctrl+Enter", "sends into the running turn"],
    ["Shift+Enter", "a new line"],
    ["↑ ↓", "what you sent before"],
    ["@", "a file of the workspace"],
  ]],
];

const PLAIN: Readonly<Record<string, () => void>> = {
  j: () => step(1),
  k: () => step(-1),
  "/": () => {
    listOpen.value = true;
    focus("search");
  },
  a: () => (trayOpen.value = !trayOpen.value),
  n: () => {
    goTo("");
    focus("composer", () => !document.getElementById("main")?.matches(".session-page"));
  },
  u: () => may("drive") && actions.undo(0),
  f: () => may("drive") && void forkEnd(),
  m: () => focus("mode"),
  t: toggleTimeline,
  d: toggleDetails,
  ".": nextTheme,
  "?": () => void show({ kind: "help" }),
};

const AFTER_G: Readonly<Record<string, () => void>> = {
  i: () => focus("composer"),
  l: () => document.querySelector<HTMLElement>(".session[aria-current], .session")?.focus(),
  c: () => focus("main"),
};

async function forkEnd(): Promise<void> {
  const last = opened.value?.view.value?.last;
  if (last) await actions.fork(last);
}

function writes(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

export function listenToKeys(): void {
  let afterG = false;
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || gate.value.at !== "in" || dialog.value) return;
    if (event.key === "Escape") {
      if (closeTopmost()) return;
      if (opened.value?.view.value?.running) void stop(true);
      else if (writes(event.target)) (event.target as HTMLElement).blur(); // the keys mean something again
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || writes(event.target)) return;
    const act = afterG ? AFTER_G[event.key] : PLAIN[event.key];
    afterG = !afterG && event.key === "g";
    if (!act) return;
    event.preventDefault();
    act();
  });
}
