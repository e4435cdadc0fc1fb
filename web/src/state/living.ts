// The page's life: signing in, the stream of all sessions, the questions, the session that is open.

import { batch, effect, signal } from "@preact/signals";
import { type SigningIn, api } from "../api/client.ts";
import { Problem, explain } from "../api/problem.ts";
import type { components } from "../api/schema.ts";
import type { SseEvent } from "../api/sse.ts";
import { Stream } from "../api/stream.ts";
import { oneLine } from "../text/neutral.ts";
import { confirm } from "./dialogs.ts";
import type { SessionLine } from "./model.ts";
import { Opened } from "./opened.ts";
import { followAddress, takeCode } from "./route.ts";
import { Watch } from "./watch.ts";
import { choices, current, cursor, dropLine, gate, lineIs, lineStops, listed, pendings, putLines, say, target } from "./store.ts";

export const opened = signal<Opened | null>(null);
let events: Stream | null = null;
let watch: Watch | null = null;

export async function begin(): Promise<void> {
  addEventListener("hashchange", () => void come(takeCode()));
  const code = takeCode();
  if (code) await come(code);
  else await enter();
}

/** An address with a code was opened. Nobody who is in becomes somebody else without being asked. */
async function come(code: string): Promise<void> {
  if (!code) return;
  const known = await api.me().catch(() => null);
  if (!known) {
    if (await signIn({ code })) await enter();
    return;
  }
  const error = await api.login({ code, only: known.name }).catch((problem: unknown) => problem);
  if (gate.value.at !== "in") await enter(); // not before: requests under way would have the key of the old sign-in
  if (!(error instanceof Problem) || error.code !== "other_name") return; // one that is used up is no news
  const text = `You are signed in as ${oneLine(known.name, 64)}. The address that was opened signs this browser in as somebody else: what you do then stands under their name.`;
  if (await confirm("Sign in as somebody else?", text, "Sign in", true)) {
    if (await signIn({ code })) location.reload();
  }
}

/** True: who we are is known now. A code that is used up may belong to one who is in already. */
export async function signIn(how: SigningIn): Promise<boolean> {
  try {
    await api.login(how);
    return true;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const known = await api.me().catch(() => null);
    if (known) return true;
    gate.value = { at: "out", why: error.status === 0 ? "silent" : "token" in how ? "wrong" : "used", detail: error.message };
    return false;
  }
}

export async function enter(): Promise<void> {
  try {
    gate.value = { at: "in", me: await api.me() };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const why = error.status === 0 || error.status >= 500 ? "silent" : gate.value.at === "in" ? "expired" : "none";
    gate.value = { at: "out", why, detail: error.message };
    if (why === "silent") setTimeout(() => gate.value.at === "out" && void enter(), 1500);
    return;
  }
  followAddress();
  void loadLines("");
  void loadChoices();
  watch ??= new Watch(
    () => events?.wake(),
    (found) => (pendings.value = found),
  );
  events?.close();
  events = new Stream({ url: () => "/api/events", onEvent: hear, onLink, rests: () => !watch?.isOurs() }).start();
}

function onLink(link: string, problem: Problem | null): void {
  lineIs("all", link === "live");
  if (link === "live") void loadPendings();
  if (link === "ended" && problem?.status === 401) leave("expired", problem.message);
}

export function leave(why: "expired" | "left", detail = ""): void {
  events?.close();
  opened.value?.close();
  batch(() => {
    opened.value = null;
    gate.value = { at: "out", why, detail };
  });
}

type ServerEvent = components["schemas"]["ServerEvent"];
type SessionChanged = components["schemas"]["SessionChanged"];

function hear(event: SseEvent): void {
  if (!event.data) return;
  const told = { event: event.name, data: JSON.parse(event.data) as unknown } as ServerEvent;
  switch (told.event) {
    case "stopping":
      return lineStops();
    case "sessions":
      return putList(told.data.sessions);
    case "session":
      return putChange(told.data);
    case "approval_required":
    case "approval_answered":
      return void loadPendings();
  }
}

function putList(sessions: readonly SessionLine[]): void {
  batch(() => {
    putLines(sessions);
    listed.value = true;
  });
}

function putChange({ how, session }: SessionChanged): void {
  if (how === "deleted") return forget(session.id);
  const waited = pendings.value.filter((pending) => pending.sessionId === session.id).length;
  putLines([session]);
  if (waited !== session.waiting) void loadPendings();
}

export function forget(id: string): void {
  batch(() => {
    dropLine(id);
    pendings.value = pendings.value.filter((one) => one.sessionId !== id);
    if (current.value === id) location.hash = "#/";
  });
}

export async function loadLines(from: string): Promise<void> {
  const found = await api.sessions({ limit: 100, cursor: from }).catch(() => null);
  if (!found) return;
  batch(() => {
    putLines(found.sessions);
    cursor.value = found.next;
    listed.value = true;
  });
}

async function loadChoices(): Promise<void> {
  const none = { choices: [] };
  const [models, agents, workspaces] = await Promise.all([
    api.models().catch(() => none),
    api.agents().catch(() => none),
    api.workspaces().catch(() => none),
  ]);
  const named = agents.choices.filter((one) => !one.name.endsWith(":COMMAND")); // a form, no agent
  choices.value = { models: models.choices, agents: named, workspaces: workspaces.choices };
}

let asking: Promise<void> | null = null;
let askAgain = false;

/** One request at a time; what was asked for meanwhile is asked once more. */
export async function loadPendings(): Promise<void> {
  if (asking) {
    askAgain = true;
    return asking;
  }
  do {
    askAgain = false;
    asking = api.approvals().then(
      (found) => {
        pendings.value = found.approvals;
        watch?.tell(found.approvals);
        opened.value?.tell(found.approvals);
      },
      () => undefined,
    );
    await asking;
    asking = null;
  } while (askAgain);
}

/** The session of the address is the one that is open. */
export function follow(): void {
  effect(() => {
    const id = current.value;
    if (gate.value.at !== "in" || opened.peek()?.id === id) return;
    opened.peek()?.close();
    const next = id ? new Opened(id) : null;
    opened.value = next;
    void next?.open().then(() => {
      if (next.detail.value) putLines([next.detail.value]);
    });
  });
  effect(() => {
    const seq = target.value;
    const one = opened.value;
    if (seq && one?.view.value) void one.reach(seq);
  });
  watchQuestions();
}

/** A question that has just been asked in the open session: what would it change? */
function watchQuestions(): void {
  let known = "";
  effect(() => {
    const shown = (opened.value?.view.value?.approvals ?? []).map((one) => one.shown).join(" ");
    if (shown !== known && shown) void loadPendings();
    known = shown;
  });
}

export function saySorry(error: unknown): false {
  if (error instanceof Problem && error.status === 401) leave("expired", error.message);
  else say(explain(error), "bad");
  return false;
}
