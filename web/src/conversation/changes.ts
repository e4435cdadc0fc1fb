// What a call would change or has changed, as diffs: the record's own where there is one, else made
// of the arguments. Pure.

import type { Call } from "../state/model.ts";
import { diffOf, parseDiff, type FileDiff } from "../text/diff.ts";

interface Piece {
  readonly old?: unknown;
  readonly new?: unknown;
}

/** The changes of a call, or none where it changes no file that is known here. */
export function changesOf(call: Call, shown = ""): FileDiff[] {
  const known = call.diff || shown;
  return known ? parseDiff(known) : fromArguments(call.name, call.arguments);
}

/** The changes that the arguments alone tell: line numbers then count from the piece's beginning. */
export function fromArguments(name: string, given: Readonly<Record<string, unknown>>): FileDiff[] {
  const path = typeof given["path"] === "string" ? given["path"] : "";
  if (name === "write" && typeof given["content"] === "string") return [diffOf(path, null, given["content"])];
  if (name !== "edit") return [];
  const pieces = Array.isArray(given["edits"]) ? (given["edits"] as Piece[]) : [given as Piece];
  if (pieces.length === 0 || !pieces.every(isPiece)) return []; // what cannot be told whole is shown as it came
  const parts = pieces.map((piece) => diffOf(path, piece.old, piece.new));
  const hunks = parts.flatMap((part) => part.hunks);
  const sum = (count: (part: FileDiff) => number) => parts.reduce((all, part) => all + count(part), 0);
  return [{ path, how: "changed", hunks, added: sum((part) => part.added), removed: sum((part) => part.removed) }];
}

function isPiece(piece: Piece): piece is { old: string; new: string } {
  return typeof piece?.old === "string" && typeof piece?.new === "string";
}

/** How many rows they have in all. */
export function rowsIn(files: readonly FileDiff[]): number {
  return files.reduce((all, file) => all + file.hunks.reduce((sum, hunk) => sum + hunk.rows.length, 0), 0);
}
