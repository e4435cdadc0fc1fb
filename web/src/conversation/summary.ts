// A call in one line, and how it stands, in words. Pure.

import type { Call, CallStatus, Child } from "../state/model.ts";
import { duration } from "../text/words.ts";
import { callSubject, resultSummary } from "../text/calls.ts";
import { oneLine } from "../text/neutral.ts";

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
  return oneLine(call.broken || callSubject(call), 160);
}

/** A summary of the result; empty if there is none. */
function outcome(call: Call): string {
  if (!call.result || (call.status !== "done" && call.status !== "failed")) return "";
  return oneLine(resultSummary(call.name, call.result, String(call.arguments["command"] ?? "")), 200);
}

/** How the call stands, in words: of one that is over, what came of it. */
export function status(call: Call): string {
  const summary = outcome(call);
  if (call.status === "done" && summary) return summary;
  if (call.status === "failed" && summary) return `failed: ${summary}`;
  return call.status === "waiting" && call.name === "ask_user" ? "needs an answer" : STATUS[call.status];
}

/** How long it ran, where that was long enough to say. */
export function took(call: Call): string {
  const seconds = (Date.parse(call.endedAt) - Date.parse(call.startedAt)) / 1000;
  return Number.isFinite(seconds) && seconds >= 1 ? duration(seconds) : "";
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
