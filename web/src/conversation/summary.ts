// A call in one line, and how it stands, in words. Pure.

import type { Call, CallStatus, Child } from "../state/model.ts";
import { duration } from "../text/words.ts";
import { oneLine } from "../text/neutral.ts";

const SUBJECTS: Record<string, readonly string[]> = {
  shell: ["command"],
  read: ["path"],
  write: ["path"],
  edit: ["path"],
  patch: ["path"],
  ls: ["path"],
  list: ["path"],
  glob: ["pattern", "path"],
  grep: ["pattern", "path"],
  task: ["description", "prompt"],
  ask_user: ["question"],
  shell_output: ["id"],
  shell_stop: ["id"],
};

const STATUS: Record<CallStatus, string> = {
  writing: "being written",
  ready: "next",
  waiting: "needs approval",
  running: "running",
  done: "done",
  failed: "failed",
  stopped: "stopped",
  denied: "denied",
  unknown: "unknown",
  skipped: "not run",
};

/** What the call is about. */
export function subject(call: Call): string {
  if (call.status === "writing") return oneLine(call.argumentsText.replace(/^\{"\w+":\s*"?/, ""), 160);
  if (call.broken) return oneLine(call.broken, 160);
  if (call.name === "exit_plan_mode") return heading(String(call.arguments["plan"] ?? ""));
  if (call.name === "todo_write") return todos(call.arguments["todos"]);
  const found = (SUBJECTS[call.name] ?? []).map((name) => call.arguments[name]).filter(isWord);
  if (found.length > 0) return oneLine(call.name === "task" ? found[0]! : found.join(" in "), 160);
  const words = Object.values(call.arguments).filter(isWord);
  if (words.length > 0) return oneLine(words[0]!, 160);
  const json = JSON.stringify(call.arguments);
  return json === "{}" ? "" : oneLine(json, 160);
}

/** The first line of a plan, unless it only says that it is one. */
function heading(plan: string): string {
  const line = oneLine(plan.replace(/^[#\s]+/, "").split("\n")[0]!, 120);
  return line.toLowerCase() === "plan" ? "" : line;
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function todos(given: unknown): string {
  if (!Array.isArray(given)) return "";
  const done = given.filter((one: { status?: string }) => one?.status === "completed").length;
  return `${done} of ${given.length} done`;
}

/** How the call stands, in words. */
export function status(call: Call): string {
  const code = exitCode(call);
  if (call.status === "failed" && code !== null) return `failed, exit code ${code}`;
  return call.status === "waiting" && call.name === "ask_user" ? "needs an answer" : STATUS[call.status];
}

/** How long it ran, where that was long enough to say. */
export function took(call: Call): string {
  const seconds = (Date.parse(call.endedAt) - Date.parse(call.startedAt)) / 1000;
  return Number.isFinite(seconds) && seconds >= 1 ? duration(seconds) : "";
}

function exitCode(call: Call): number | null {
  const data = call.result?.data as { exit_code?: unknown } | null | undefined;
  return typeof data?.exit_code === "number" ? data.exit_code : null;
}

/** The result as a person reads it: of a command its output, not what the model was told around it. */
export function resultText(call: Call): string {
  const data = call.result?.data as { output?: unknown } | null | undefined;
  const text = call.result?.text ?? "";
  if (typeof data?.output === "string" && data.output.trim() !== "" && call.result?.ok) return data.output;
  return text;
}

/** A child session, in words. */
export function childWords(child: Child): string {
  if (child.state === "running") return "running";
  return child.reason === "parked" ? "needs an answer" : child.reason || child.state;
}

/** The arguments that the line above does not say already, as JSON. */
export function restOf(call: Call): string {
  const told = call.name === "shell" ? ["command"] : call.diff ? ["path", "old", "new", "edits", "content", "all", "patch"] : [];
  const rest = Object.fromEntries(Object.entries(call.arguments).filter(([name]) => !told.includes(name)));
  return Object.keys(rest).length > 0 ? JSON.stringify(rest, null, 2) : "";
}
