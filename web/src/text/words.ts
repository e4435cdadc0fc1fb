// Small facts in words: sizes, money, times and counts. Pure.

import { oneLine } from "./neutral.ts";

const UNITS: [number, string][] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
];

/** `3 lines`, `1 line`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
}

/** Dollars for a person, by the same rules as `format_cost` of bridle.usage. `unpriced` counts replies without a price. */
export function formatCost(cost: number, unpriced = 0): string {
  if (unpriced > 0 && cost === 0) return "cost unknown";
  const text = cost >= 0.1 || cost === 0 ? DOLLARS.format(cost) : cost < 0.0001 ? "under $0.0001" : small(cost);
  return unpriced > 0 ? `${text} + unknown` : text;
}

const DOLLARS = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });

/** Two significant digits, and never fewer than two decimals. */
function small(cost: number): string {
  const [whole = "0", decimals = ""] = String(Number(cost.toPrecision(2))).split(".");
  return `$${whole}.${decimals.padEnd(2, "0")}`;
}

/** As a sentence of its own: with a full stop, and with a capital unless it begins with a name. */
export function sentence(text: string): string {
  const said = /^[a-z]+([ ,]|$)/.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text;
  return !said || /[.!?…]$/.test(said) ? said : `${said}.`;
}

/** A model's name without its vendor's. */
export function shortModel(name: string): string {
  return oneLine(name.slice(name.lastIndexOf("/") + 1), 80);
}

/** A duration in its two largest units at most: `1 h 5 min`, `42 s`. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
  let rest = Math.floor(seconds);
  const said: string[] = [];
  for (const [size, unit] of UNITS) {
    if (rest >= size && said.length < 2) said.push(`${Math.floor(rest / size)} ${unit}`);
    rest %= size;
  }
  return said.join(" ");
}

/** The time of day of a record, in the reader's own clock. */
export function clock(timestamp: string): string {
  const when = new Date(timestamp);
  if (Number.isNaN(when.getTime())) return "";
  return when.toLocaleTimeString([], { hour: "numeric", minute: "2-digit" });
}

/** How long a text is, in words that fit on a button. */
export function size(text: string): string {
  const lines = text.split("\n").length;
  return lines > 1 ? counted(lines, "line") : counted(text.length, "character");
}
