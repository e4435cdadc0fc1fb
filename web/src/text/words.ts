// Small facts in words: sizes, money, times and counts. Pure.

const UNITS: [number, string][] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
];

/** `3 lines`, `1 line`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
}

/** Dollars, as exactly as they matter. */
export function money(cost: number): string {
  if (cost === 0) return "$0";
  if (cost < 0.01) return `$${cost.toPrecision(2)}`;
  return `$${cost.toFixed(cost < 1 ? 3 : 2)}`;
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
  return when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

/** How long a text is, in words that fit on a button. */
export function size(text: string): string {
  const lines = text.split("\n").length;
  return lines > 1 ? counted(lines, "line") : counted(text.length, "character");
}
