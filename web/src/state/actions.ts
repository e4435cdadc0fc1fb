// What a person can do with the session that is open. Each says by itself what went wrong.

import { signal } from "@preact/signals";
import { type SessionChange, api } from "../api/client.ts";
import { Problem, explain } from "../api/problem.ts";
import { confirm, show } from "./dialogs.ts";
import { forget, loadPendings, opened, saySorry } from "./living.ts";
import type { Actions, AnswerWords, Approval, Mode, When } from "./model.ts";
import { oneLine } from "../text/neutral.ts";
import { goTo } from "./route.ts";
import { current, may, me, putLines, say, sessions } from "./store.ts";

/** Words for the composer: it takes them and clears this. */
export const composing = signal<string | null>(null);

async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    return saySorry(error);
  }
}

/** Answers a request, and again while the server cannot be reached: the first answer alone counts. */
async function answer(approval: Approval, words: AnswerWords): Promise<"ok" | "again" | "failed"> {
  let tries = 0;
  try {
    await persistently(() => {
      tries += 1;
      return api.answer(approval.sessionId, approval.callId, approval.shown, words);
    });
    return "ok";
  } catch (error) {
    if (tries > 1 && isAnsweredByUs(error)) return "ok"; // the reply to an earlier try was lost
    if (!(error instanceof Problem) || ![404, 409, 410].includes(error.status)) {
      saySorry(error);
      return "failed";
    }
    say(lost(error), error.code === "approval_changed" ? "bad" : "quiet");
    return "again";
  } finally {
    void loadPendings();
  }
}

function isAnsweredByUs(error: unknown): boolean {
  return error instanceof Problem && error.code === "approval_answered" && error.more["by"] === me.value?.name;
}

/** Somebody else was faster: who, and what did they say? */
function lost(error: Problem): string {
  const by = error.more["by"];
  if (error.code !== "approval_answered" || typeof by !== "string") return explain(error);
  return `${by === "me" ? "It was answered already" : `${by} was faster`}: ${error.more["allowed"] === true ? "allowed" : "denied"}.`;
}

async function previewRule(sessionId: string, rule: string): Promise<readonly string[] | null> {
  return api.previewRule(sessionId, rule).then(
    (found) => found.calls,
    () => null,
  );
}

async function fork(at: number): Promise<boolean> {
  return attempt(async () => {
    const made = await api.fork(current.value, at);
    putLines([made]);
    goTo(made.id);
    say("This is the fork; the other session stays as it was.");
  });
}

async function rewind(to: number): Promise<boolean> {
  const text = "The conversation goes back to what it was at this point. Changes to files stay, and the log keeps everything.";
  if (!(await confirm("Rewind to here?", text, "Rewind"))) return false;
  const done = await attempt(() => api.rewind(current.value, to));
  if (done) void opened.value?.seek(null);
  return done;
}

async function undo(turn: number): Promise<void> {
  const id = current.value;
  try {
    const preview = await api.undoPreview(id, turn);
    if (preview.files.length + preview.clashes.length + preview.uncovered.length === 0) {
      return say(`Nothing to undo: the files are already as they were before turn ${preview.turn}.`);
    }
    const pressed = await show({ kind: "undo", preview });
    if (!pressed) return;
    const done = await api.undo(id, preview.turn, preview.token, pressed === "yes" ? "refuse" : pressed);
    const kept = preview.clashes.map((clash) => clash.path).filter((path) => done.skipped.includes(path));
    say(undoneText(preview.turn, done.files.length, kept));
  } catch (error) {
    saySorry(error);
  }
}

function undoneText(turn: number, files: number, kept: readonly string[]): string {
  const done = `Turn ${turn} is undone: ${files} ${files === 1 ? "file was" : "files were"} restored`;
  if (kept.length === 0) return `${done}.`;
  return `${done}, ${kept.length === 1 ? `${oneLine(kept[0]!, 80)} was` : `${kept.length} changed files were`} kept.`;
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    say("The browser does not let this page write to the clipboard.", "bad");
    return false;
  }
  say("Copied.");
  return true;
}

export const actions: Actions = {
  answer,
  previewRule,
  fork,
  rewind,
  undo: (turn) => void undo(turn),
  interrupt: () => attempt(() => api.interrupt(current.value)),
  openSession: goTo,
  compose: (text) => void (composing.value = text),
  copy,
  say,
  loadOlder: () => opened.value?.loadOlder() ?? Promise.resolve(false),
  seek: (seq) => void opened.value?.seek(seq),
};

const MODES: readonly Mode[] = ["plan", "ask", "edits", "auto"]; // each allows more than the ones before it

/** Modes in which it does something without asking, and what is said before it may. */
const WIDER: Readonly<Record<string, { readonly title: string; readonly text: string; readonly yes: string }>> = {
  edits: { title: "Edit files without asking?", text: "It may change files in this folder without your approval. Everything else still asks.", yes: "Switch to mode Edits" },
  auto: { title: "Let it work without asking?", text: "Calls that would need your approval run without asking. What is denied stays denied.", yes: "Switch to mode Auto" },
};

export async function change(id: string, what: SessionChange): Promise<boolean> {
  if (what.mode === "auto" && !may("admin")) return saySorry(new Problem(403, "forbidden_role", "Mode auto needs the role admin."));
  const wider = WIDER[what.mode ?? ""];
  const before = (sessions.value.get(id)?.mode || "ask") as Mode;
  if (wider && MODES.indexOf(what.mode!) > MODES.indexOf(before) && !(await confirm(wider.title, wider.text, wider.yes, true))) return false;
  return attempt(async () => putLines([await api.change(id, what)]));
}

/** Takes back a prompt that waits. */
export function withdraw(sessionId: string, seq: number): Promise<boolean> {
  return attempt(() => api.withdraw(sessionId, seq));
}

function stopText(queued: number): string {
  const next = queued === 0 ? "" : queued === 1 ? " The queued prompt starts next." : ` The first of ${queued} queued prompts starts next.`;
  return `Finished changes stay.${next}`;
}

/** Stops the turn that runs, after a question. */
export async function stop(ask: boolean): Promise<void> {
  const view = opened.value?.view.value;
  if (!view?.running) return;
  if (ask && !(await confirm("Stop now?", stopText(view.queued.length), "Stop"))) return;
  await actions.interrupt();
}

export async function remove(id: string): Promise<void> {
  const text = "The session and its log are deleted for everybody. This cannot be undone; export it first if you may need it.";
  if (!(await confirm("Delete this session?", text, "Delete", true))) return;
  if (await attempt(() => api.remove(id))) forget(id);
}

export async function compact(id: string): Promise<void> {
  if (await attempt(() => api.compact(id))) say("The conversation was shortened for the model.");
}

/** The session as a file. By fetch: a link could not say who asks. */
export async function download(id: string, format: "jsonl" | "markdown"): Promise<void> {
  await attempt(async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await api.exported(id, format));
    link.download = `${id}.${format === "markdown" ? "md" : "jsonl"}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
}

const TRIES = 40;

/** Does the work, and again, each time after a longer wait, while the server cannot be reached. */
async function persistently(work: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    try {
      await work();
      return;
    } catch (error) {
      const isUnheard = error instanceof Problem && (error.status === 0 || error.code === "server_stopping");
      if (!isUnheard || tries >= TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.min(3000, 250 * 2 ** tries)));
    }
  }
}

function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Sends a prompt, and again with the same key while no answer comes: it can only count once. */
export async function send(id: string, prompt: string, when: When): Promise<boolean> {
  const key = newKey();
  try {
    await persistently(() => api.chat(id, prompt, when, key));
    return true;
  } catch (error) {
    const isBusy = error instanceof Problem && error.code === "session_busy"; // a turn has begun meanwhile
    return isBusy && when === "idle" ? send(id, prompt, "queue") : saySorry(error);
  }
}
