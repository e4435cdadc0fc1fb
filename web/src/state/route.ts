// Where the page is, in the address's fragment: `#/s/ID` or `#/s/ID@SEQ`. `#code=…` signs in.

import { batch } from "@preact/signals";
import { current, target } from "./store.ts";

export interface Place {
  readonly id: string;
  readonly seq: number;
}

export function toPlace(fragment: string): Place {
  const found = /^#\/s\/([^@/]+)(?:@(\d+))?$/.exec(fragment);
  try {
    return { id: decodeURIComponent(found?.[1] ?? ""), seq: Number(found?.[2] ?? 0) };
  } catch {
    return { id: "", seq: 0 }; // an address that somebody mangled
  }
}

export function toFragment(id: string, seq = 0): string {
  return id ? `#/s/${encodeURIComponent(id)}${seq ? `@${seq}` : ""}` : "#/";
}

/** The one-time code, taken out of the address so that it stays in no history. */
export function takeCode(): string {
  const found = /^#(?:.*&)?code=([^&]+)/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", location.pathname);
  return decodeURIComponent(found[1]!);
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
