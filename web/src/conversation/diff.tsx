// Changes of files, in one column or in two. The choice is remembered; narrow windows have one.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { DiffProps } from "../state/model.ts";
import { parseDiff, sides, type FileDiff, type Hunk, type Row } from "../text/diff.ts";
import { neutral } from "../text/neutral.ts";
import { counted } from "../text/words.ts";
import { memo } from "./memo.tsx";

type Shape = "inline" | "split";

const PLACE = "bridle.diff";
const MOST_ROWS = 400;
const SIGNS = { same: " ", gone: "-", new: "+", note: "" } as const;
const SPOKEN = { same: "", gone: "removed: ", new: "added: ", note: "" } as const;

const shape = signal<Shape>(remembered());
const narrow = window.matchMedia("(max-width: 760px)");
const isNarrow = signal(narrow.matches);
narrow.addEventListener("change", () => (isNarrow.value = narrow.matches));

function remembered(): Shape {
  try {
    return localStorage.getItem(PLACE) === "split" ? "split" : "inline";
  } catch {
    return "inline"; // a browser that keeps nothing
  }
}

function choose(next: Shape): void {
  shape.value = next;
  try {
    localStorage.setItem(PLACE, next);
  } catch {
    // it holds for as long as the page is open
  }
}

/** A unified diff, file by file. */
export const Diff = memo(function Diff({ diff, label = "" }: DiffProps): JSX.Element {
  const files = useMemo(() => parseDiff(diff), [diff]);
  return <FileDiffs files={files} label={label} />;
});

interface FileDiffsProps {
  readonly files: readonly FileDiff[];
  readonly label?: string;
  readonly whole?: boolean; // every line at once, as a question has to show it
}

/** Differences that were worked out already. */
export function FileDiffs({ files, label = "", whole = false }: FileDiffsProps): JSX.Element {
  const split = shape.value === "split" && !isNarrow.value;
  return (
    <div class="diffs" role="group" aria-label={label || "Changes"}>
      {files.map((file, at) => (
        <OneFile key={at} file={file} split={split} first={at === 0} whole={whole} />
      ))}
    </div>
  );
}

interface OneFileProps {
  readonly file: FileDiff;
  readonly split: boolean;
  readonly first: boolean;
  readonly whole: boolean;
}

function OneFile({ file, split, first, whole }: OneFileProps): JSX.Element {
  const [all, showAll] = useState(whole);
  const hunks = all ? file.hunks : cut(file.hunks);
  const count = file.hunks.reduce((sum, hunk) => sum + hunk.rows.length, 0);
  const name = neutral(file.path) || "change";
  return (
    <section class="diff" aria-label={`Changes to ${name}`}>
      <header class="diff-head">
        <span class="diff-path">{name}</span>
        {file.how !== "changed" && <span class="tag">{file.how === "added" ? "new" : "deleted"}</span>}
        <span class="plus">+{file.added}</span>
        <span class="minus">−{file.removed}</span>
        {first && !isNarrow.value && <Switch split={split} />}
      </header>
      <div class="diff-scroll" tabIndex={0} role="group" aria-label={`Lines of ${name}`}>
        {split ? <TwoColumns hunks={hunks} /> : <OneColumn hunks={hunks} />}
      </div>
      {count > MOST_ROWS && !all && (
        <button type="button" class="quiet more" data-grows onClick={() => showAll(true)}>
          Show all {counted(count, "line")}
        </button>
      )}
    </section>
  );
}

function cut(hunks: readonly Hunk[]): Hunk[] {
  const kept: Hunk[] = [];
  let room = MOST_ROWS;
  for (const hunk of hunks) {
    if (room <= 0) break;
    kept.push({ head: hunk.head, rows: hunk.rows.slice(0, room) });
    room -= hunk.rows.length;
  }
  return kept;
}

function Switch({ split }: { split: boolean }): JSX.Element {
  return (
    <button type="button" class="quiet diff-switch" data-grows aria-pressed={split} onClick={() => choose(split ? "inline" : "split")}>
      Side by side
    </button>
  );
}

function OneColumn({ hunks }: { hunks: readonly Hunk[] }): JSX.Element {
  return (
    <table class="rows rows-one">
      {hunks.map((hunk, at) => (
        <tbody key={at}>
          {(at > 0 || hunk.head) && <Gap head={hunk.head} columns={4} />}
          {hunk.rows.map((row, place) => (
            <tr key={place} class={`row-${row.kind}`}>
              <td class="number" data-line={row.old || ""} />
              <td class="number" data-line={row.now || ""} />
              <Sign row={row} />
              <Words row={row} />
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  );
}

function TwoColumns({ hunks }: { hunks: readonly Hunk[] }): JSX.Element {
  return (
    <table class="rows rows-two">
      {hunks.map((hunk, at) => (
        <tbody key={at}>
          {(at > 0 || hunk.head) && <Gap head={hunk.head} columns={6} />}
          {sides(hunk.rows).map(({ left, right }, place) => (
            <tr key={place}>
              <Half row={left} number={left?.old ?? 0} />
              <Half row={right} number={right?.now ?? 0} />
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  );
}

function Half({ row, number }: { row: Row | null; number: number }): JSX.Element {
  if (!row) return <td class="row-none" colSpan={3} />;
  return (
    <>
      <td class={`number row-${row.kind}`} data-line={number || ""} />
      <Sign row={row} />
      <Words row={row} />
    </>
  );
}

function Sign({ row }: { row: Row }): JSX.Element {
  return (
    <td class={`sign row-${row.kind}`} aria-hidden="true">
      {SIGNS[row.kind]}
    </td>
  );
}

function Words({ row }: { row: Row }): JSX.Element {
  return (
    <td class={`code row-${row.kind}`}>
      {SPOKEN[row.kind] && <span class="unseen">{SPOKEN[row.kind]}</span>}
      {row.spans.map((span, at) => (span.changed ? <mark key={at}>{neutral(span.text)}</mark> : neutral(span.text)))}
    </td>
  );
}

function Gap({ head, columns }: { head: string; columns: number }): JSX.Element {
  return (
    <tr class="row-gap">
      <td colSpan={columns}>{head ? neutral(head) : "⋯"}</td>
    </tr>
  );
}
