// The timeline: the whole session on a slim line, to go back to any record of it and look.

import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Mark, TimelineProps, View } from "../state/model.ts";
import { clock } from "../text/words.ts";
import { costLine, nearest, stepped, TALL, ticks, told, WIDE, x } from "./strip.ts";

const KINDS: readonly Mark["kind"][] = ["reply", "call", "files", "approval", "notice", "end", "prompt"];

/** A slider over the records. With mouse, touch or keys; `End` is now. */
export function Timeline({ view, at, actions }: TimelineProps): JSX.Element | null {
  const [hover, setHover] = useState<Mark | null>(null);
  const line = useRef<HTMLDivElement>(null);
  const frame = useRef(0);
  const wanted = useRef(at); // what was asked for last: keys come faster than the past is shown
  useLayoutEffect(() => void (wanted.current = at), [at]); // at once: a key may come before the next frame
  if (view.marks.length < 2) return null;
  const markAt = (event: PointerEvent) => {
    const box = line.current!.getBoundingClientRect();
    return nearest(view, Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)));
  };
  const seek = (mark: Mark | null) => {
    cancelAnimationFrame(frame.current);
    const isNow = mark === null || mark.seq >= view.last;
    const next = (wanted.current = isNow ? null : mark.seq);
    frame.current = requestAnimationFrame(() => actions.seek(next));
  };
  const moved = (event: PointerEvent) => {
    const mark = markAt(event);
    setHover(mark);
    if (event.buttons === 1) seek(mark);
  };
  const pressed = (event: PointerEvent) => {
    line.current?.setPointerCapture(event.pointerId);
    seek(markAt(event));
  };
  const keyed = (event: KeyboardEvent) => {
    const move = KEYS[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    seek(move === "first" ? (view.marks[0] ?? null) : move === "now" ? null : stepped(view, wanted.current, move.step, move.turns));
  };
  const shown = hover ?? (at !== null ? view.marks.findLast((mark) => mark.seq <= at) : undefined);
  return (
    <div class={at === null ? "timeline" : "timeline timeline-past"}>
      {view.first > 1 && <button type="button" class="quiet" onClick={() => void actions.loadOlder()}>Load older</button>}
      <div
        id="timeline" class="timeline-line" ref={line} role="slider" tabIndex={0} aria-label="Timeline" aria-orientation="horizontal"
        aria-valuemin={view.first} aria-valuemax={view.last} aria-valuenow={at ?? view.last} aria-valuetext={told(view, at)}
        onPointerMove={moved} onPointerDown={pressed} onPointerLeave={() => setHover(null)} onKeyDown={keyed}
      >
        <Strip view={view} />
        <span class="timeline-knob" style={{ left: `${percent(view, at ?? view.last)}%` }} aria-hidden="true" />
        {shown && <Tip view={view} mark={shown} />}
      </div>
    </div>
  );
}

/** What the place under the pointer, or the one that is shown, was. */
function Tip({ view, mark }: { view: View; mark: Mark }): JSX.Element {
  const left = Math.max(8, Math.min(92, percent(view, mark.seq)));
  return (
    <span class="timeline-tip" style={{ left: `${left}%` }} aria-hidden="true">
      {told(view, mark.seq)} <time>{clock(mark.at)}</time>
    </span>
  );
}

function percent(view: View, seq: number): number {
  return x(view, seq) / (WIDE / 100);
}

const KEYS: Record<string, { step: number; turns: boolean } | "first" | "now"> = {
  ArrowLeft: { step: -1, turns: false },
  ArrowDown: { step: -1, turns: false },
  ArrowRight: { step: 1, turns: false },
  ArrowUp: { step: 1, turns: false },
  PageDown: { step: -1, turns: true },
  PageUp: { step: 1, turns: true },
  Home: "first",
  End: "now",
  Escape: "now",
};

function Strip({ view }: Pick<TimelineProps, "view">): JSX.Element {
  const cost = useMemo(() => costLine(view), [view.turns, view.last]);
  const paths = useMemo(() => KINDS.map((kind) => [kind, ticks(view, kind)] as const), [view.marks, view.last, view.first]);
  return (
    <svg viewBox={`0 0 ${WIDE} ${TALL}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
      {cost && <path class="strip-cost" d={cost} />}
      {paths.map(([kind, path]) => path && <path key={kind} class={`strip-${kind}`} d={path} />)}
    </svg>
  );
}
