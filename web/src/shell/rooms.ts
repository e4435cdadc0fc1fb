// Which parts of the page are open: the list (a drawer where it is narrow), details, tray, timeline.

import { signal } from "@preact/signals";
import { keep, kept } from "./keeping.ts";

export const listOpen = signal(false); // as a drawer; where there is room it always shows
export const detailsOpen = signal(kept("details") !== "closed");
export const detailsDrawer = signal(false);
export const trayOpen = signal(false);
export const timelineOpen = signal(kept("timeline") === "open");
export const now = signal(Date.now());

const WIDE = matchMedia("(min-width: 1180px)");
const NARROW = matchMedia("(max-width: 760px)");

export function toggleDetails(): void {
  if (!WIDE.matches) {
    detailsDrawer.value = !detailsDrawer.value;
    return;
  }
  detailsOpen.value = !detailsOpen.value;
  keep("details", detailsOpen.value ? "" : "closed");
}

/** Show the list; it always shows unless the page is narrow. */
export function openList(): void {
  listOpen.value = NARROW.matches;
}

export function toggleTimeline(): void {
  timelineOpen.value = !timelineOpen.value;
  keep("timeline", timelineOpen.value ? "open" : "");
}

/** The topmost thing that lies over the page is closed; false: there was none. */
export function closeTopmost(): boolean {
  const open = [trayOpen, detailsDrawer, listOpen].find((one) => one.value);
  if (open) open.value = false;
  return open !== undefined;
}

export function tick(): void {
  setInterval(() => (now.value = Date.now()), 30_000);
}
