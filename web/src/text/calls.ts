// What a call is about, and a summary of its result. Pure; the page's twin of presentation/calls.py:
// tests/presentation/test_same_sentences.py compares the two.

import { counted } from "./words.ts";

export interface SomeCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface SomeResult {
  readonly ok: boolean;
  readonly text: string;
  readonly data: unknown;
}

const SUBJECTS = ["command", "pattern", "path", "query", "url", "name", "question", "description", "prompt", "id"];
const COUNTS: Readonly<Record<string, readonly [key: string, noun: string, plural: string]>> = {
  list: ["entries", "entry", "entries"],
  glob: ["count", "file", "files"],
};
const FIRST_LINE = new Set(["edit", "write"]); // tools whose result says in its first line what was done
const PATCHED = /^(?:\+\+\+|---) (?:[ab]\/)?([^\t\n]+)/gm;
const LISTING = new Set(["dir", "fd", "find", "git ls-files", "git branch", "git tag", "ls"]);
const TEXT = new Set([
  ...["cat", "cut", "du", "env", "grep", "head", "history", "jq", "printenv", "ps", "rg", "sed"],
  ...["sort", "tree", "uniq"],
  ...["git diff", "git grep", "git log", "git show", "git stash", "git status"],
]);
const SIZE = / {2}[\d.]+ [KMGT]?B$/; // behind the name of a file that is listed
const ENDING = /^\[(?:exit code|timed out after|ended by signal) /;
const SEPARATORS = new Set(["|", "|&", "||", "&&", ";", "&"]);
const LIST_LENGTH = 60; // characters of a list of names
const ENTRY_LENGTH = 40; // ... and of a name in it

/** What a call is about: its command, path or pattern; else its arguments as JSON. */
export function callSubject({ arguments: given }: SomeCall): string {
  if (Array.isArray(given["todos"])) return counted(given["todos"].length, "item");
  if (typeof given["patch"] === "string") {
    const names = [...given["patch"].matchAll(PATCHED)].map((found) => found[1]!.trim());
    const files = [...new Set(names.filter((name) => name !== "/dev/null"))];
    if (files.length > 0) return files.join(", ");
  }
  if (typeof given["plan"] === "string" && given["plan"].trim()) return planTitle(given["plan"]);
  for (const name of SUBJECTS) {
    const value = given[name];
    if (typeof value !== "string" || !value) continue;
    const path = name === "pattern" ? given["path"] : undefined;
    return typeof path === "string" && path ? `${value} in ${path}` : value;
  }
  return Object.keys(given).length > 0 ? JSON.stringify(given) : "";
}

/** The first line of a plan, unless it only says that it is one. */
function planTitle(plan: string): string {
  const line = plan.replace(/^[#\s]+/, "").split("\n")[0]!.trim();
  return line.toLowerCase() === "plan" ? "" : line;
}

/** A result in one line: what went wrong, the last line, or how much there is. */
export function resultSummary(name: string, result: SomeResult, command = ""): string {
  const failed = !result.ok;
  let lines = result.text.split(/\r\n|\r|\n/).filter((line) => line.trim());
  const data = (result.data !== null && typeof result.data === "object" ? result.data : {}) as Record<string, unknown>;
  const shell = name === "shell" ? data : {};
  if (shell["job"]) return `runs in the background as ${String(shell["job"])}`;
  if (lines.length === 0) return "no output";
  if (name === "todo_write" && !failed) return ""; // the list stands beside, and its length before
  if (FIRST_LINE.has(name) && !failed) return lines[0]!.replace(/:$/, "");
  if ("exit_code" in shell) {
    const printed = String(shell["output"] ?? "").split(/\r\n|\r|\n/).filter((line) => line.trim());
    const notes = lines.slice(printed.length || 1);
    if (notes.length > 0) return commandSummary(printed, bare(notes[0]!), command, failed);
  }
  if (name === "shell" && lines.at(-1)!.startsWith("[")) {
    const found = lines.findLastIndex((line) => ENDING.test(line));
    const end = found < 0 ? lines.length - 1 : found;
    return commandSummary(lines.slice(0, end), bare(lines[end]!), command, failed);
  }
  const counts = COUNTS[name];
  if (counts && !failed) {
    const count = data[counts[0]];
    if (typeof count === "number" && count > 0) {
      const names = lines.filter((line) => !line.startsWith(" ")).map((line) => line.replace(SIZE, ""));
      return listSummary(names, counted(count, counts[1], counts[2]), count);
    }
  }
  if (name === "task" && !failed) {
    const at = result.text.indexOf("\n\n"); // what the subagent said last
    const report = at < 0 ? "" : result.text.slice(at + 2).trim();
    if (report) lines = [report.split("\n")[0]!];
  }
  if (failed) return lines[0]! + (lines.length > 1 ? ` (+${counted(lines.length - 1, "line")})` : "");
  return lines.length === 1 ? lines[0]! : counted(lines.length, "line");
}

function bare(note: string): string {
  return note.replace(/^[[\]]+|[[\]]+$/g, "");
}

function commandSummary(output: readonly string[], how: string, command: string, failed: boolean): string {
  const last = output.at(-1)?.trim() ?? "";
  if (last === "" || last === "(no output)") return failed ? `${how} · no output` : "no output";
  const program = failed || output.length === 1 ? "" : lastProgram(command);
  const lines = counted(output.length, "line");
  if (TEXT.has(program)) return lines;
  if (LISTING.has(program)) return listSummary(output, lines, output.length);
  const more = output.length > 1 ? ` (${lines})` : "";
  return failed ? `${how} · ${last}${more}` : `${last}${more}`;
}

/** How many entries a list has, and the first of them if they are short. */
function listSummary(names: readonly string[], count: string, total: number): string {
  const shown: string[] = [];
  for (const name of names.map((name) => name.trim())) {
    if (name.length > ENTRY_LENGTH || [...shown, name].join(", ").length > LIST_LENGTH || name.startsWith("[…")) break;
    shown.push(name);
  }
  if (shown.length === 0) return count;
  return `${count}: ${shown.join(", ")}${shown.length < total ? ", …" : ""}`;
}

/** The last program that a command line runs: `ls`, or `git log` with its subcommand. */
function lastProgram(command: string): string {
  const words = shellWords(command.trim().split(/\r\n|\r|\n/).at(-1) ?? "");
  if (words === null) return "";
  const [program = "", ...rest] = words.slice(words.findLastIndex((word) => SEPARATORS.has(word)) + 1);
  const name = program.slice(program.lastIndexOf("/") + 1);
  return name === "git" && rest[0] ? `git ${rest[0]}` : name;
}

/** The words of a command line; null if a quotation does not end. */
function shellWords(line: string): string[] | null {
  const words: string[] = [];
  const piece = /\s+|([();<>|&]+)|((?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\();<>|&])+)/gy;
  while (piece.lastIndex < line.length) {
    const found = piece.exec(line);
    if (!found) return null;
    const word = found[1] ?? found[2];
    if (word !== undefined) words.push(word.replace(/\\(.)|['"]/g, "$1"));
  }
  return words;
}
