// Telling a person who looks elsewhere: the page's title, and the browser's notifications.
//
// Permission is asked for only when somebody presses the button that says what it is for.

import { effect, signal } from "@preact/signals";
import type { Pending } from "../state/model.ts";
import { goTo } from "../state/route.ts";
import { currentLine, gate, may, pendings } from "../state/store.ts";
import { oneLine } from "../text/neutral.ts";
import { keep, kept } from "./keeping.ts";
import { titleOf } from "./words.ts";

const can = "Notification" in globalThis;
const permission = signal(can ? Notification.permission : "denied");
const declined = signal(kept("notify") === "no");

export function NotifyOffer() {
  if (permission.value !== "default" || declined.value) return null;
  const ask = (): void => void Notification.requestPermission().then((said) => (permission.value = said));
  const decline = (): void => {
    declined.value = true;
    keep("notify", "no");
  };
  return (
    <div class="offer">
      <p>Notify you when something needs your approval and you are elsewhere?</p>
      <button type="button" class="button small" onClick={ask}>
        Notify me
      </button>
      <button type="button" class="button plain small" onClick={decline}>
        No, thanks
      </button>
    </div>
  );
}

export function followTitle(): void {
  effect(() => {
    const waiting = gate.value.at === "in" ? pendings.value.length : 0;
    const line = gate.value.at === "in" ? currentLine.value : null;
    document.title = `${waiting ? `(${waiting}) ` : ""}${line ? `${titleOf(line)} · ` : ""}bridle`;
  });
}

/** Each question once; those that stood there when the page came are not news. */
export function followQuestions(): void {
  let known: Set<string> | null = null;
  effect(() => {
    const found = pendings.value;
    const news = found.filter((one) => known && !known.has(one.shown));
    known = new Set(found.map((one) => one.shown));
    if (document.visibilityState === "hidden" && permission.value === "granted" && may("answer")) news.forEach(notify);
  });
}

function notify(pending: Pending): void {
  const what = pending.asked.commands?.[0] ?? pending.asked.paths?.[0] ?? "";
  const body = oneLine(`${pending.asked.call.name}${what ? `: ${what}` : ""}`, 200);
  const note = new Notification(oneLine(pending.sessionTitle, 100) || "A session needs your approval", { body, tag: pending.shown });
  note.onclick = () => {
    window.focus();
    goTo(pending.sessionId, pending.seq);
    note.close();
  };
}
