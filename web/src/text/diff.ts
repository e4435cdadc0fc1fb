// Unified diffs read into rows, and made of two texts. Pure: what is shown is another room's.
//
// A row is a line with its numbers. Rows stand in the order of the diff (inline); `sides` pairs them
// for two columns.

import { compare, wordMarks, type Span } from "./lines.ts";

export type Row = {
  kind: "same" | "gone" | "new" | "note";
  old: number; // line number, 0 where it has none
  now: number;
  spans: Span[];
};
export type Hunk = { head: string; rows: Row[] };
export type FileDiff = { path: string; how: "added" | "changed" | "deleted"; hunks: Hunk[]; added: number; removed: number };
export type Pair = { left: Row | null; right: Row | null };

const HEAD = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/;
const AROUND = 3;
const NOWHERE = "/dev/null";

/** The files of a unified diff. What is no diff becomes a note, so that nothing is lost. */
export function parseDiff(text: string): FileDiff[] {
  const files: FileDiff[] = [];
  let file: FileDiff | null = null;
  const lines = text.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    if (line.startsWith("--- ") && lines[at + 1]?.startsWith("+++ ")) {
      file = named(line.slice(4), lines[++at]!.slice(4));
      files.push(file);
      continue;
    }
    const head = HEAD.exec(line);
    if (head) {
      file ??= begun(files);
      at = readHunk(file, lines, at, head);
    } else {
      file ??= begun(files); // nothing is left out: what is no diff is a note
      noted(file, line);
    }
  }
  for (const one of files) finish(one);
  return files;
}

function begun(files: FileDiff[]): FileDiff {
  const file: FileDiff = { path: "", how: "changed", hunks: [], added: 0, removed: 0 };
  files.push(file);
  return file;
}

function named(old: string, now: string): FileDiff {
  const before = bare(old, "a/");
  const after = bare(now, "b/");
  const how = before === NOWHERE ? "added" : after === NOWHERE ? "deleted" : "changed";
  return { path: after === NOWHERE ? before : after, how, hunks: [], added: 0, removed: 0 };
}

function bare(name: string, prefix: string): string {
  const path = name.split("\t")[0]!;
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

const MARKED: Record<string, Row["kind"]> = { "+": "new", "-": "gone" };

/** A line outside of every hunk; one that is marked tells what comes or goes, without a number. */
function noted(file: FileDiff, line: string): void {
  const kind = MARKED[line[0] ?? ""] ?? "note";
  const row: Row = { kind, old: 0, now: 0, spans: [{ text: kind === "note" ? line : line.slice(1), changed: false }] };
  const last = file.hunks[file.hunks.length - 1];
  if (last) last.rows.push(row);
  else file.hunks.push({ head: "", rows: [row] });
}

/** Reads the lines that the head counts; returns the index of the last one that belongs to it. */
function readHunk(file: FileDiff, lines: string[], at: number, head: RegExpExecArray): number {
  let old = Number(head[1]);
  let now = Number(head[3]);
  const oldEnd = old + Number(head[2] ?? 1);
  const nowEnd = now + Number(head[4] ?? 1);
  const hunk: Hunk = { head: (head[5] ?? "").trim(), rows: [] };
  file.hunks.push(hunk);
  while (at + 1 < lines.length && (old < oldEnd || now < nowEnd)) {
    const line = lines[at + 1]!;
    const kind = line[0] === "+" ? "new" : line[0] === "-" ? "gone" : line[0] === " " || line === "" ? "same" : null;
    if (kind === null && line[0] !== "\\") break;
    at++;
    if (kind === null) {
      hunk.rows.push(row("note", 0, 0, line));
      continue;
    }
    hunk.rows.push(row(kind, kind === "new" ? 0 : old, kind === "gone" ? 0 : now, line.slice(1)));
    if (kind !== "new") old++;
    if (kind !== "gone") now++;
  }
  return at;
}

function row(kind: Row["kind"], old: number, now: number, text: string): Row {
  return { kind, old, now, spans: [{ text, changed: false }] };
}

/** The difference between two texts. `first` is the number of their first line, where it is known. */
export function diffOf(path: string, old: string | null, now: string | null, first = 1): FileDiff {
  const before = old === null ? [] : splitLines(old);
  const after = now === null ? [] : splitLines(now);
  const rows = compare(before, after).map((step) => {
    const text = step.kind === "new" ? after[step.now]! : before[step.old]!;
    return row(step.kind, step.kind === "new" ? 0 : step.old + first, step.kind === "gone" ? 0 : step.now + first, text);
  });
  const how = old === null ? "added" : now === null ? "deleted" : "changed";
  const file: FileDiff = { path, how, hunks: hunksOf(rows), added: 0, removed: 0 };
  finish(file);
  return file;
}

function splitLines(text: string): string[] {
  const lines = text.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  return lines;
}

/** Rows in hunks: what is the same stays only near a change. */
function hunksOf(rows: Row[]): Hunk[] {
  const hunks: Hunk[] = [];
  let last = -Infinity; // the newest row that is shown
  rows.forEach((one, at) => {
    if (one.kind === "same") return;
    const from = Math.max(0, at - AROUND, last + 1);
    if (from > last + 1 || hunks.length === 0) hunks.push({ head: "", rows: [] });
    const hunk = hunks[hunks.length - 1]!;
    for (let k = from; k <= at; k++) hunk.rows.push(rows[k]!);
    last = at;
    for (let k = at + 1; k <= at + AROUND && rows[k]?.kind === "same"; k++) hunk.rows.push(rows[(last = k)]!);
  });
  return hunks;
}

/** Counts the lines, and marks the words in lines that were changed one for one. */
function finish(file: FileDiff): void {
  for (const hunk of file.hunks) {
    for (const run of runs(hunk.rows)) {
      file.added += run.fresh.length;
      file.removed += run.gone.length;
      if (run.gone.length !== run.fresh.length) continue;
      run.gone.forEach((left, at) => {
        const right = run.fresh[at]!;
        [left.spans, right.spans] = wordMarks(textOf(left), textOf(right));
      });
    }
  }
}

function* runs(rows: Row[]): Generator<{ gone: Row[]; fresh: Row[] }> {
  let gone: Row[] = [];
  let fresh: Row[] = [];
  for (const one of rows) {
    if (one.kind === "gone" && fresh.length > 0) {
      yield { gone, fresh };
      [gone, fresh] = [[], []];
    }
    if (one.kind === "gone") gone.push(one);
    else if (one.kind === "new") fresh.push(one);
    else if (gone.length + fresh.length > 0) {
      yield { gone, fresh };
      [gone, fresh] = [[], []];
    }
  }
  if (gone.length + fresh.length > 0) yield { gone, fresh };
}

/** The text of a row. */
export function textOf(one: Row): string {
  return one.spans.map((span) => span.text).join("");
}

/** Rows for two columns: what went at the left, what came at the right, in the same line. */
export function sides(rows: Row[]): Pair[] {
  const pairs: Pair[] = [];
  let gone: Row[] = [];
  let fresh: Row[] = [];
  const flush = () => {
    for (let at = 0; at < Math.max(gone.length, fresh.length); at++) {
      pairs.push({ left: gone[at] ?? null, right: fresh[at] ?? null });
    }
    [gone, fresh] = [[], []];
  };
  for (const one of rows) {
    if (one.kind === "gone" && fresh.length > 0) flush();
    if (one.kind === "gone") gone.push(one);
    else if (one.kind === "new") fresh.push(one);
    else {
      flush();
      pairs.push({ left: one, right: one });
    }
  }
  flush();
  return pairs;
}
