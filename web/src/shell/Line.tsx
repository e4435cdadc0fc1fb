// The thin line that says how the connection is, and the notes at the bottom. They do not chatter.

import { hush, line, toasts } from "../state/store.ts";
import { neutral } from "../text/neutral.ts";
import { Close } from "./icons.tsx";

const WORDS = {
  live: "",
  broken: "Reconnecting…",
  stopping: "The server is stopping…",
  back: "Reconnected. Nothing was missed.",
} as const;

export function ConnectionLine() {
  const state = line.value;
  return (
    <div class={`line line-${state}`} role="status" aria-live="polite">
      {WORDS[state]}
    </div>
  );
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div class={`toast ${toast.tone}`} key={toast.id}>
          <span>{neutral(toast.text)}</span>
          <button type="button" class="button plain square small" aria-label="Close this note" onClick={() => hush(toast.id)}>
            <Close />
          </button>
        </div>
      ))}
    </div>
  );
}
