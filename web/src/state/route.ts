// Goes where the address says, and says in the address where the page is. `#code=…` signs in.

import { batch } from "@preact/signals";
import { toFragment, toPlace } from "./place.ts";
import { current, target } from "./store.ts";

export { toFragment } from "./place.ts";

/** The one-time code, taken out of the address so that it stays in no history. */
export function takeCode(): string {
  const found = /^#(?:.*&)?code=([^&]+)/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", location.pathname);
  return found[1]!; // it is made of letters that need no escape; what is not will not sign in
}

export function goTo(id: string, seq = 0): void {
  const fragment = toFragment(id, seq);
  if (location.hash === fragment) arrive();
  else location.hash = fragment;
}

function arrive(): void {
  const place = toPlace(location.hash);
  batch(() => {
    current.value = place.id;
    target.value = place.seq;
  });
}

export function followAddress(): void {
  addEventListener("hashchange", arrive);
  arrive();
}
