// Which sessions the list shows, and in which order: children below their parents. Pure.

import type { SessionLine, State } from "../state/model.ts";

export type Filter = "all" | State;

export interface Branch {
  readonly line: SessionLine;
  readonly children: readonly SessionLine[];
}

/** The newest first; a child whose parent is not known stands by itself. */
export function branches(lines: Iterable<SessionLine>, filter: Filter, words: string): readonly Branch[] {
  const all = [...lines].sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : a.id < b.id ? 1 : -1));
  const known = new Map(all.map((line) => [line.id, line]));
  const below = new Map<string, SessionLine[]>();
  for (const line of all) {
    const root = rootOf(line, known);
    if (root !== line.id) below.set(root, [...(below.get(root) ?? []), line]);
  }
  return all
    .filter((line) => rootOf(line, known) === line.id)
    .map((line): Branch => ({ line, children: below.get(line.id) ?? [] }))
    .filter((branch) => [branch.line, ...branch.children].some((line) => fits(line, filter, words)));
}

/** The oldest known ancestor; a ring, which cannot be, ends where it began. */
function rootOf(line: SessionLine, known: ReadonlyMap<string, SessionLine>): string {
  let at = line;
  for (let depth = 0; depth < 20; depth += 1) {
    const parent = known.get(at.parent);
    if (!parent) return at.id;
    at = parent;
  }
  return line.id;
}

export function fits(line: SessionLine, filter: Filter, words: string): boolean {
  if (filter !== "all" && line.state !== filter) return false;
  const text = `${line.title} ${line.id} ${line.workspace} ${line.model} ${line.tags.join(" ")}`.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** The order in which j and k go through what is shown. */
export function inOrder(found: readonly Branch[], unfolded: (branch: Branch) => boolean): readonly string[] {
  return found.flatMap((branch) => [branch.line.id, ...(unfolded(branch) ? branch.children.map((one) => one.id) : [])]);
}
