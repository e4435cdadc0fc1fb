// What the page does: signing in, talking, following the list.

import { effect } from "@preact/signals";
import { Problem, sentence } from "../../src/api/problem.ts";
import { keep } from "../../src/shell/keeping.ts";
import { api, events, problemOf, type Task, type Tasks, type Wanted } from "./api.ts";
import * as s from "./state.ts";
import { type Language, RTL } from "./words.ts";

const TOKEN = "bridle.chat.token"; // of this tab alone: another tab may be another person
const AGAIN = 1_500; // milliseconds until a stream that broke is taken up again
let following: AbortController | null = null;

/** A conversation that was opened. One that is new has no name until the first answer is there. */
interface Talk {
  id: string | null;
}

let here: Talk = { id: null };
let order = Promise.resolve(); // what is said goes out one after the other

export function begin(): void {
  effect(() => {
    document.documentElement.lang = s.language.value;
    document.documentElement.dir = RTL.has(s.language.value) ? "rtl" : "ltr";
    document.title = s.me.value ? `${s.title.value} · ${s.me.value.user_id}` : s.title.value;
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") s.drawer.value = false;
  });
  addEventListener("hashchange", () => void arrive());
  void arrive();
}

/** An address may bring a token, which is taken out of it at once; or name a conversation. */
async function arrive(): Promise<void> {
  s.about.value ??= await api.about().catch(() => null);
  const brought = /[#&]token=([^&\s]+)/.exec(location.hash)?.[1];
  if (brought) {
    history.replaceState(null, "", location.pathname);
    await signIn(brought);
    return;
  }
  if (s.gate.value === "in") {
    await open(named());
    return;
  }
  const kept = sessionStorage.getItem(TOKEN) ?? "";
  if (kept) await signIn(kept);
  else s.gate.value = "none";
}

const named = (): string | null => /^#\/c\/([\w-]+)$/.exec(location.hash)?.[1] ?? null;

export async function signIn(token: string): Promise<boolean> {
  const before = s.gate.value;
  try {
    const me = await api.me(token);
    sessionStorage.setItem(TOKEN, token);
    s.token.value = token;
    s.me.value = me;
  } catch (error) {
    const known = error instanceof Problem && error.status === 401;
    s.gate.value = known ? (before === "checking" && !location.hash ? "expired" : "wrong") : "none";
    if (known) sessionStorage.removeItem(TOKEN);
    return false;
  }
  s.about.value ??= await api.about().catch(() => null);
  s.gate.value = "in";
  void follow();
  await Promise.all([list(), open(named())]);
  return true;
}

export function signOut(why: "left" | "expired" = "left"): void {
  following?.abort();
  sessionStorage.removeItem(TOKEN);
  history.replaceState(null, "", location.pathname);
  s.gate.value = why;
  s.token.value = s.draft.value = "";
  s.me.value = s.current.value = null;
  here = { id: null };
  s.lines.value = [];
  s.conversations.value = [];
  s.tasks.value = { tasks: [], open: 0, done: 0, next: "" };
}

/** What did not work; a token that is not good any more ends the sign-in. */
function missed(error: unknown): string {
  if (error instanceof Problem && error.status === 401) signOut("expired");
  return sentence(error);
}

let listings = 0; // how many lists were asked for: an older one may come after a newer one

export async function list(more = false): Promise<void> {
  const mine = ++listings;
  try {
    const found = await api.conversations(s.who.value, more ? s.moreConversations.value : "");
    if (mine !== listings) return;
    s.conversations.value = more ? [...s.conversations.value, ...found.conversations] : found.conversations;
    s.moreConversations.value = found.next;
  } catch (error) {
    missed(error);
  }
}

export async function open(id: string | null): Promise<void> {
  s.drawer.value = false;
  s.tab.value = "chat";
  if (id !== null && id === s.current.value) return;
  here = { id };
  s.current.value = id;
  s.lines.value = [];
  s.earlier.value = "";
  if (id === null) return;
  await read(id, "");
}

export async function read(id: string, cursor: string): Promise<void> {
  try {
    const found = await api.messages(s.who.value, id, cursor);
    if (s.current.value !== id) return;
    const lines = found.messages.map((one): s.Line => ({ id: one.id, role: one.role, text: one.content, state: "there" }));
    s.lines.value = [...lines, ...(cursor ? s.lines.value : [])];
    s.earlier.value = found.next;
  } catch (error) {
    missed(error);
    if (error instanceof Problem && error.status === 404) go(null);
  }
}

export function go(id: string | null): void {
  history.pushState(null, "", id ? `#/c/${id}` : location.pathname);
  void open(id);
}

export async function remove(id: string): Promise<void> {
  s.removing.value = null;
  try {
    await api.remove(s.who.value, id);
  } catch (error) {
    missed(error);
  }
  if (s.current.value === id) go(null);
  await list();
}

/** Say something: at once, or when what was said before has its answer. The key stays the same when it
 *  is tried again: nothing is done twice. */
export function say(text: string, again?: s.Line): void {
  const key = again?.key ?? newKey();
  const spoken: s.Line = { id: `u${key}`, role: "user", text, state: "there" };
  const reply: s.Line = { id: `a${key}`, role: "assistant", text: "", state: "waiting", key };
  if (again) put(reply);
  else s.lines.value = [...s.lines.value, spoken, reply];
  const who = s.who.value;
  const talk = here;
  order = order.then(() => (s.who.value === who ? deliver(text, reply, talk) : undefined));
}

async function deliver(text: string, reply: s.Line, talk: Talk): Promise<void> {
  const body: Wanted = { message: text, conversation_id: talk.id, timezone: zone(), language: s.language.value };
  try {
    await hear(body, reply, talk);
  } catch (error) {
    put({ ...reply, state: "failed", why: missed(error) });
  }
  void list();
}

async function hear(body: Wanted, reply: s.Line, talk: Talk): Promise<void> {
  let text = "";
  for await (const event of events(await api.say(s.who.value, body, reply.key ?? ""))) {
    const said = JSON.parse(event.data) as Record<string, unknown>;
    if (event.name === "text") put({ ...reply, text: (text += String(said["text"])) });
    else if (event.name === "error") throw problemOf(said);
    else if (event.name === "done") {
      settle({ ...reply, text: String(said["response"]), state: "there" }, String(said["conversation_id"]), talk);
      return;
    }
  }
  throw new Problem(0, "no_answer", s.words.value.offline);
}

/** An answer is whole. What was new has a name now; who left meanwhile and came back reads it anew. */
function settle(reply: s.Line, place: string, talk: Talk): void {
  talk.id = place;
  if (talk === here && s.current.value === null) {
    s.current.value = place;
    history.replaceState(null, "", `#/c/${place}`);
  }
  if (s.lines.value.some((one) => one.id === reply.id)) put(reply);
  else if (s.current.value === place) void read(place, "");
}

function put(line: s.Line): void {
  s.lines.value = s.lines.value.map((one) => (one.id === line.id ? line : one));
}

/** The list, as it changes; for as long as somebody is signed in. */
async function follow(): Promise<void> {
  following?.abort();
  if (!s.me.value?.tasks) return;
  const control = (following = new AbortController());
  while (!control.signal.aborted) {
    try {
      for await (const event of events(await api.live(s.who.value, control.signal))) {
        s.linked.value = true;
        if (event.name === "tasks") show(JSON.parse(event.data) as Tasks);
        else if (event.name === "stopping") break;
      }
    } catch (error) {
      if (control.signal.aborted) return;
      missed(error);
      s.linked.value = false;
    }
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}

let shown = false;

function show(found: Tasks): void {
  const before = new Map(s.tasks.value.tasks.map((one) => [one.id, JSON.stringify(one)]));
  const changed = found.tasks.filter((one: Task) => shown && before.get(one.id) !== JSON.stringify(one));
  s.fresh.value = new Set(changed.map((one) => one.id));
  s.tasks.value = found;
  shown = true;
}

export function speak(language: string): void {
  s.language.value = language as Language;
  keep("chat.language", language);
}

function zone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
