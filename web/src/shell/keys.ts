// The keyboard: everything that can be done can be done with it, and typing is never a command.
//
// A letter goes to the composer, wherever the focus is. Only an approval that has the focus takes
// letters itself (conversation/armed.ts).

import { actions, stop } from "../state/actions.ts";
import { dialog, show } from "../state/dialogs.ts";
import { opened } from "../state/living.ts";
import { goTo } from "../state/route.ts";
import { gate, may } from "../state/store.ts";
import { COMMAND, CONTROL, commandOf, isText } from "../text/keyboard.ts";
import { focus } from "./focus.ts";
import { closeTopmost, detailsDrawer, listOpen, openList, timelineOpen, toggleDetails, toggleTimeline, trayOpen } from "./rooms.ts";
import { step } from "./Sessions.tsx";

type Key = readonly [string, string];

export const KEYS: readonly (readonly [string, readonly Key[]])[] = [
  ["Go to", [
    [`${COMMAND}↓`, "the next session"],
    [`${COMMAND}↑`, "the previous session"],
    [`${CONTROL}K`, "search all sessions"],
    [`${CONTROL}F`, "search this conversation; again: the browser's search"],
    [`${COMMAND}Q`, "the approval that has waited longest"],
    [`${COMMAND}A`, "the approvals of all sessions"],
    [`${COMMAND}C`, "the conversation; there ↑ and ↓ move"],
    [`${COMMAND}L`, "the list of sessions"],
    ["A…Z", "the prompt, from anywhere"],
  ]],
  ["Do", [
    ["Esc", "close what is on top; stop the turn, after a confirmation; go back to the prompt"],
    [`${COMMAND}N`, "new session"],
    [`${COMMAND}U`, "undo, with a preview"],
    [`${COMMAND}M`, "change the mode"],
    [`${COMMAND}T`, "timeline"],
    [`${COMMAND}D`, "details"],
    [`${CONTROL}/`, "these keys"],
  ]],
  ["Answer an approval that has the focus", [
    ["y", "allow it once"],
    ["s", "allow it for this session"],
    ["r", "allow it with a rule"],
    ["n", "deny it"],
    ["w", "deny it and say why"],
    ["c", "agree to a plan, with changes"],
    ["1…6", "choose an answer to a question"],
  ]],
  ["Write", [
    ["Enter", "send; queue while a turn runs"],
    ["Ctrl+Enter", "send into the running turn"],
    ["Shift+Enter", "new line"],
    ["↑ ↓", "your earlier prompts"],
    ["@", "a file of the workspace"],
  ]],
];

const COMMANDS: Readonly<Record<string, () => void>> = {
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  a: () => (trayOpen.value = !trayOpen.value),
  c: () => (document.querySelector<HTMLElement>(".feed article[tabindex='0']") ?? document.getElementById("main"))?.focus(),
  d: toggleDetails,
  l: () => {
    openList();
    document.querySelector<HTMLElement>(".session[aria-current], .session")?.focus();
  },
  m: () => focus("mode"),
  n: () => {
    goTo("");
    focus("composer", () => !document.getElementById("main")?.matches(".session-page"));
  },
  t: () => {
    toggleTimeline();
    if (timelineOpen.value) focus("timeline");
  },
  u: () => may("drive") && actions.undo(0),
};

const SHORTCUTS: Readonly<Record<string, () => void>> = {
  k: () => {
    openList();
    focus("search");
  },
  "/": () => void show({ kind: "help" }),
};

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA)$/.test(target.tagName));
}

/** May what is typed there go to the composer? A panel over the page and an open list of choices keep their keys. */
function isLoose(target: EventTarget | null): boolean {
  if (isField(target) || trayOpen.value || detailsDrawer.value || listOpen.value) return false;
  if (!(target instanceof Element)) return true;
  return !target.closest("dialog") && !(target.matches("select") && isOpenList(target));
}

function isOpenList(select: Element): boolean {
  return CSS.supports("selector(:open)") && select.matches(":open");
}

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || gate.value.at !== "in" || dialog.value) return;
    if (event.key === "Escape") return escape();
    const control = event.ctrlKey !== event.metaKey && !event.altKey;
    const act = control ? SHORTCUTS[event.key.toLowerCase()] : COMMANDS[commandOf(event)];
    if (act) {
      event.preventDefault();
      act();
    } else if (isLoose(event.target) && (control ? event.key === "v" : isText(event) && event.key !== " ")) {
      document.getElementById("composer")?.focus(); // the browser then writes it there
    }
  });
}

function escape(): void {
  if (closeTopmost()) return;
  if (opened.value?.view.value?.running) void stop(true);
  else document.getElementById("composer")?.focus();
}
