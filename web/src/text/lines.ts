// Which lines two texts have in common (Myers), and which words two lines have. Pure and bounded:
// texts that would take too long to compare are told apart as a whole.

export type Step = { kind: "same" | "gone" | "new"; old: number; now: number };

const MOST_EDITS = 2000; // beyond this the middle is one large change

/** The steps from `old` to `now`: runs through both, in order, by index. */
export function compare<T>(old: readonly T[], now: readonly T[]): Step[] {
  let start = 0;
  const shorter = Math.min(old.length, now.length);
  while (start < shorter && old[start] === now[start]) start++;
  let end = 0;
  while (end < shorter - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const steps: Step[] = [];
  for (let at = 0; at < start; at++) steps.push({ kind: "same", old: at, now: at });
  const middle = myers(old.slice(start, old.length - end), now.slice(start, now.length - end));
  for (const step of middle) steps.push({ kind: step.kind, old: step.old + start, now: step.now + start });
  for (let at = end; at > 0; at--) steps.push({ kind: "same", old: old.length - at, now: now.length - at });
  return steps;
}

function myers<T>(old: readonly T[], now: readonly T[]): Step[] {
  const most = Math.min(old.length + now.length, MOST_EDITS);
  const trail: Int32Array[] = [];
  const reach = new Int32Array(2 * most + 3);
  for (let edits = 0; edits <= most; edits++) {
    trail.push(reach.slice());
    for (let k = -edits; k <= edits; k += 2) {
      let x = furthest(reach, k, edits, most);
      while (x < old.length && x - k < now.length && old[x] === now[x - k]) x++;
      reach[k + most + 1] = x;
      if (x >= old.length && x - k >= now.length) return walkBack(trail, old.length, now.length, most);
    }
  }
  return replaced(old.length, now.length);
}

function furthest(reach: Int32Array, k: number, edits: number, most: number): number {
  const left = reach[k + most] ?? 0;
  const right = reach[k + most + 2] ?? 0;
  return k === -edits || (k !== edits && left < right) ? right : left + 1;
}

function walkBack(trail: Int32Array[], oldLength: number, nowLength: number, most: number): Step[] {
  const steps: Step[] = [];
  let x = oldLength;
  let y = nowLength;
  for (let edits = trail.length - 1; edits >= 0; edits--) {
    const reach = trail[edits]!;
    const k = x - y;
    const down = k === -edits || (k !== edits && reach[k + most]! < reach[k + most + 2]!);
    const before = down ? k + 1 : k - 1;
    const fromX = edits === 0 ? 0 : reach[before + most + 1]!;
    const fromY = edits === 0 ? 0 : fromX - before;
    while (x > fromX && y > fromY) steps.push({ kind: "same", old: --x, now: --y });
    if (edits === 0) break;
    if (down) steps.push({ kind: "new", old: x, now: --y });
    else steps.push({ kind: "gone", old: --x, now: y });
  }
  return steps.reverse();
}

function replaced(oldLength: number, nowLength: number): Step[] {
  const steps: Step[] = [];
  for (let at = 0; at < oldLength; at++) steps.push({ kind: "gone", old: at, now: 0 });
  for (let at = 0; at < nowLength; at++) steps.push({ kind: "new", old: oldLength, now: at });
  return steps;
}

export type Span = { text: string; changed: boolean };

const LONGEST_LINE = 2000;
const WORDS = /\w+|\s+|[^\w\s]/gu;

/** The two lines in spans, those that differ marked; nothing is marked where little is alike. */
export function wordMarks(old: string, now: string): [Span[], Span[]] {
  const plain: [Span[], Span[]] = [[{ text: old, changed: false }], [{ text: now, changed: false }]];
  if (old.length > LONGEST_LINE || now.length > LONGEST_LINE) return plain;
  const before = old.match(WORDS) ?? [];
  const after = now.match(WORDS) ?? [];
  const steps = compare(before, after);
  const kept = steps.filter((step) => step.kind === "same" && before[step.old]!.trim() !== "").length;
  const solid = Math.max(before.filter(isSolid).length, after.filter(isSolid).length);
  if (kept * 3 < solid) return plain;
  const left: Span[] = [];
  const right: Span[] = [];
  for (const step of steps) {
    if (step.kind !== "new") grow(left, before[step.old]!, step.kind === "gone");
    if (step.kind !== "gone") grow(right, after[step.now]!, step.kind === "new");
  }
  return [left, right];
}

function isSolid(word: string): boolean {
  return word.trim() !== "";
}

function grow(spans: Span[], text: string, changed: boolean): void {
  const last = spans[spans.length - 1];
  if (last && last.changed === changed) last.text += text;
  else spans.push({ text, changed });
}
