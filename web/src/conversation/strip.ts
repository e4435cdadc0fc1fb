// The arithmetic of the timeline: records as places on a line, and which of them a place means. Pure.

import type { Mark, Turn, View } from "../state/model.ts";
import { formatCost } from "../text/words.ts";

export const WIDE = 1000; // the line's own units
export const TALL = 24;

/** Where a record stands on the line. */
export function x(view: View, seq: number): number {
  const span = Math.max(1, view.last - view.first);
  return Math.round((Math.max(0, Math.min(span, seq - view.first)) / span) * WIDE);
}

const TICKS: Record<Mark["kind"], readonly [number, number]> = {
  prompt: [2, 22],
  reply: [15, 18],
  call: [11, 20],
  approval: [5, 20],
  files: [8, 20],
  end: [19, 22],
  notice: [15, 20],
};

/** The ticks of one kind as one path: at most one for each place. */
export function ticks(view: View, kind: Mark["kind"]): string {
  const [from, to] = TICKS[kind];
  const places = new Set<number>();
  for (const mark of view.marks) if (mark.kind === kind) places.add(x(view, mark.seq));
  return [...places].map((place) => `M${place} ${from}V${to}`).join("");
}

/** What was spent, as a line from the bottom left up; nothing where nothing was. */
export function costLine(view: View): string {
  const ended = view.turns.filter((turn) => turn.cost > 0);
  const all = ended.reduce((sum, turn) => sum + turn.cost, 0);
  if (all === 0) return "";
  let spent = 0;
  const points = ended.map((turn) => {
    const before = height(spent / all);
    spent += turn.cost;
    return `H${x(view, turn.seq)}V${before}L${x(view, turn.endSeq || view.last)} ${height(spent / all)}`;
  });
  return `M0 ${TALL}${points.join("")}H${WIDE}`;
}

function height(share: number): number {
  return Math.round((TALL - share * (TALL - 2)) * 10) / 10;
}

/** The mark that is nearest to a share (0 to 1) of the line. */
export function nearest(view: View, share: number): Mark | null {
  const wanted = view.first + share * (view.last - view.first);
  let best: Mark | null = null;
  for (const mark of view.marks) {
    if (best === null || Math.abs(mark.seq - wanted) < Math.abs(best.seq - wanted)) best = mark;
  }
  return best;
}

/** The mark that is a step away from a record; null beyond the end: that is now. */
export function stepped(view: View, at: number | null, step: number, turns = false): Mark | null {
  const marks = turns ? view.marks.filter((mark) => mark.kind === "prompt") : view.marks;
  const here = at ?? view.last; // the newest record is now itself
  if (step > 0) return marks.find((mark) => mark.seq > here) ?? null;
  return marks.findLast((mark) => mark.seq < here) ?? marks[0] ?? null;
}

/** What the line says of a record, in words. */
export function told(view: View, at: number | null): string {
  if (at === null) return "now";
  const mark = view.marks.findLast((one) => one.seq <= at);
  const turn = turnAt(view.turns, at);
  const parts = [turn ? `turn ${turn.number}` : "", mark ? `${WORDS[mark.kind]}${mark.label ? ` ${mark.label}` : ""}` : `record ${at}`];
  const turns = view.turns.filter((one) => one.seq <= at);
  const spent = turns.reduce((sum, one) => sum + one.cost, 0);
  const unpriced = turns.reduce((sum, one) => sum + one.unpriced, 0);
  if (spent > 0 || unpriced > 0) parts.push(formatCost(spent, unpriced));
  return parts.filter(Boolean).join(", ");
}

const WORDS: Record<Mark["kind"], string> = {
  prompt: "prompt:",
  reply: "reply",
  call: "call:",
  approval: "approval:",
  files: "files changed:",
  end: "end of the turn",
  notice: "",
};

function turnAt(turns: readonly Turn[], seq: number): Turn | undefined {
  return turns.findLast((turn) => turn.seq <= seq);
}
