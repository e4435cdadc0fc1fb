// What the page does: signing in, talking, following the list.

import { effect } from "@preact/signals";
import { Problem } from "../../src/api/problem.ts";
import { keep } from "../../src/shell/keeping.ts";
import { api, events, type MessagePage, problemOf, type Task, type Tasks, type Wanted } from "./api.ts";
import * as s from "./state.ts";
import { type Language, RTL } from "./words.ts";

const TOKEN = "bridle.chat.token"; // of this tab alone: another tab may be another person
const SENT = "bridle.chat.sent"; // what this tab has sent and has no answer to yet
const DRAFT = "bridle.chat.draft"; // what is being written in this tab, and by whom
const AGAIN = 1_500; // milliseconds until a stream that broke is taken up again
const LOOKS = 40; // times that an answer is looked for which another window waits for as well
const LATER = 300; // seconds: who has to wait for longer is not told to try again
let following: AbortController | null = null;

/** A conversation that was opened. One that is new has no name until the first answer is there; until then it
 *  is known by the keys of what was said in it. */
class Talk {
  readonly keys = new Set<string>();
  id: string | null;

  constructor(id: string | null) {
    this.id = id;
  }
}

let here = new Talk(null);
let order = Promise.resolve(); // what is said goes out one after the other
let leaving = false; // the page goes: what is cut short now is taken up by the next one

export function begin(): void {
  effect(() => {
    document.documentElement.lang = s.language.value;
    document.documentElement.dir = RTL.has(s.language.value) ? "rtl" : "ltr";
    document.title = s.me.value ? `${s.title.value} · ${s.me.value.user_id}` : s.title.value;
  });
  effect(() => {
    if (s.gate.value === "in") sessionStorage.setItem(DRAFT, JSON.stringify({ user: s.who.value.user, text: s.draft.value }));
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") s.drawer.value = false;
  });
  addEventListener("pagehide", () => (leaving = true));
  addEventListener("pageshow", () => (leaving = false));
  addEventListener("hashchange", () => void arrive());
  addEventListener("focus", () => void catchUp());
  document.addEventListener("visibilitychange", () => void catchUp());
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
  try {
    const me = await api.me(token);
    if (me.user_id !== lastUser) s.draft.value = "";
    sessionStorage.setItem(TOKEN, token);
    s.token.value = token;
    s.me.value = me;
  } catch (error) {
    const known = error instanceof Problem && error.status === 401;
    s.gate.value = !known ? "away" : sessionStorage.getItem(TOKEN) === token ? "expired" : "wrong";
    if (known) sessionStorage.removeItem(TOKEN);
    else setTimeout(() => s.gate.value === "away" && void signIn(token), AGAIN);
    return false;
  }
  s.about.value ??= await api.about().catch(() => null);
  const sent = kept(); // before anything new is said
  s.draft.value ||= writtenBefore();
  s.gate.value = "in";
  void follow();
  const opened = open(named());
  takeUp(sent);
  await Promise.all([list(), opened]);
  return true;
}

/** What this user was writing when the page was loaded anew. */
function writtenBefore(): string {
  const before = JSON.parse(sessionStorage.getItem(DRAFT) ?? "{}") as { user?: string; text?: string };
  return before.user === s.who.value.user ? (before.text ?? "") : "";
}

let lastUser = ""; // whose sign-in expired: what they were writing is there when they are back

export function signOut(why: "left" | "expired" = "left"): void {
  following?.abort();
  if (s.me.value) lastUser = why === "expired" ? s.me.value.user_id : "";
  sessionStorage.removeItem(TOKEN);
  if (why === "left") for (const key of [SENT, DRAFT]) sessionStorage.removeItem(key);
  history.replaceState(null, "", location.pathname);
  s.gate.value = why;
  s.token.value = "";
  s.me.value = s.current.value = null;
  here = new Talk(null);
  s.lines.value = [];
  s.conversations.value = [];
  s.tasks.value = { tasks: [], open: 0, done: 0, next: "" };
}

/** Something did not work; a token that is not good any more ends the sign-in. */
function missed(error: unknown): void {
  if (error instanceof Problem && error.status === 401) signOut("expired");
}

/** Why a message was not answered. */
function faultOf(error: unknown): s.Fault {
  const problem = error instanceof Problem ? error : new Problem(0, "", "");
  const { status, code, message: detail } = problem;
  if (status === 429) return { kind: Number(problem.more["wait"]) > LATER ? "usedUp" : "tooMany", detail };
  if (code === "unknown_conversation") return { kind: "gone", detail };
  return { kind: code === "message_refused" || status === 413 ? "refused" : "again", detail };
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
  here = new Talk(id);
  s.current.value = id;
  s.lines.value = [];
  s.earlier.value = "";
  s.unread.value = false;
  if (id === null) return;
  await read(id, "");
  void lookForAnswer(id);
}

function take(found: MessagePage, cursor: string): void {
  const lines = found.messages.map((one): s.Line => ({ id: one.id, role: one.role, text: one.content, state: "there" }));
  if (!cursor && lines.at(-1)?.role === "user") lines.push({ id: "next", role: "assistant", text: "", state: "waiting" });
  s.lines.value = [...lines, ...(cursor ? s.lines.value : failedBefore(lines))];
  s.earlier.value = found.next;
  s.unread.value = false;
}

/** The messages of this conversation that were not answered before the page was loaded anew. */
function failedBefore(lines: readonly s.Line[]): s.Line[] {
  const failed = kept().filter((one) => one.fault && one.user === s.who.value.user && one.conversation_id === s.current.value);
  const last = lines.at(-1)?.id === "next" ? lines.at(-2) : undefined; // it reached the server, and its answer is looked for
  return failed.filter((one) => one.message !== last?.text).flatMap(failedLines);
}

function failedLines({ key, message, conversation_id: place, fault }: Sent): s.Line[] {
  const reply: s.Line = { id: `a${key}`, role: "assistant", text: "", state: "failed", key, place };
  return [{ id: `u${key}`, role: "user", text: message, state: "there" }, fault ? { ...reply, fault } : reply];
}

export async function read(id: string, cursor: string): Promise<void> {
  try {
    const found = await api.messages(s.who.value, id, cursor);
    if (s.current.value !== id) return;
    take(found, cursor);
  } catch (error) {
    missed(error);
    if (error instanceof Problem && error.status === 404) go(null);
    else s.unread.value = s.current.value === id && s.lines.value.length === 0;
  }
}

/** An answer that was on its way when the conversation was opened: looked for until it is there, or something
 *  more is said here. */
async function lookForAnswer(id: string): Promise<void> {
  const talk = here;
  const waits = (): boolean => here === talk && s.lines.value.at(-1)?.id === "next";
  for (let look = 0; look < LOOKS && waits(); look++) {
    await new Promise((done) => setTimeout(done, AGAIN));
    if (waits()) await read(id, "");
  }
  if (waits()) s.lines.value = s.lines.value.slice(0, -1);
}

/** Show what was said in another window, once somebody comes back to this one: a "yes delete" answers what was
 *  asked last, wherever that was. */
async function catchUp(): Promise<void> {
  const talk = here;
  const id = s.current.value;
  const isQuiet = (): boolean => here === talk && s.gate.value === "in" && s.lines.value.every((one) => one.state === "there");
  if (id === null || document.hidden || !isQuiet()) return;
  try {
    const found = await api.messages(s.who.value, id, "");
    const known = s.lines.value.slice(-found.messages.length);
    const isNew = found.messages.some((one, at) => known[at]?.role !== one.role || known[at]?.text !== one.content);
    if (!isNew || !isQuiet()) return;
    take(found, "");
    void lookForAnswer(id);
  } catch (error) {
    missed(error); // what is shown stays
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
    if (s.current.value === id) go(null);
  } catch (error) {
    missed(error);
  }
  await list();
}

/** Say something: at once, or when what was said before has its answer. The key stays the same when it
 *  is tried again: nothing is done twice. */
export function say(text: string, again?: s.Line): void {
  const key = again?.key ?? newKey();
  const spoken: s.Line = { id: `u${key}`, role: "user", text, state: "there" };
  const place = again?.place === undefined ? {} : { place: again.place };
  const reply: s.Line = { id: `a${key}`, role: "assistant", text: "", state: "waiting", key, ...place };
  if (again) put(reply);
  else s.lines.value = [...settledLines(), spoken, reply];
  const who = s.who.value;
  const talk = here;
  const sent = { message: text, conversation_id: talk.id, timezone: zone(), language: s.language.value };
  talk.keys.add(key);
  unsettled([...others(key), { ...sent, key, user: who.user }]);
  order = order.then(() => (s.who.value === who && !leaving ? deliver(text, reply, talk) : undefined));
}

async function deliver(text: string, reply: s.Line, talk: Talk): Promise<void> {
  const line = reply.place === undefined ? { ...reply, place: talk.id } : reply;
  const body: Wanted = { message: text, conversation_id: talk.id, timezone: zone(), language: s.language.value };
  const sent: Sent = { ...body, key: line.key ?? "", user: s.who.value.user };
  unsettled([...others(sent.key), sent]);
  try {
    await hear(body, line, talk).catch((error: unknown) => {
      const elsewhere = error instanceof Problem && error.code === "idempotency_conflict" && line.place !== talk.id;
      if (!elsewhere) throw error; // else it arrived when it was sent first, before its conversation had a name
      return hear({ ...body, conversation_id: line.place ?? null }, line, talk);
    });
    unsettled(others(sent.key));
  } catch (error) {
    if (leaving) return;
    const fault = faultOf(error);
    put({ ...line, state: "failed", fault });
    missed(error);
    if (s.gate.value === "expired") s.draft.value ||= text;
    const isLost = s.gate.value === "expired" || fault.kind === "gone";
    unsettled(isLost ? others(sent.key) : [...others(sent.key), { ...sent, conversation_id: talk.id, fault }]);
  }
  void list();
}

/** A message that was sent, or waits for those before it, and has no answer yet; or why it has none. */
interface Sent extends Wanted {
  readonly key: string;
  readonly user: string;
  readonly fault?: s.Fault;
}

const kept = (): Sent[] => JSON.parse(sessionStorage.getItem(SENT) ?? "[]") as Sent[];
const others = (key: string): Sent[] => kept().filter((one) => one.key !== key);
const unsettled = (sent: Sent[]): void => sessionStorage.setItem(SENT, JSON.stringify(sent));

/** What had no answer yet when the page was loaded anew is sent again, with its key: the server does nothing
 *  twice, and an answer that it has, it gives again. */
function takeUp(before: readonly Sent[]): void {
  const who = s.who.value;
  for (const { key, user, fault, ...sent } of before) {
    if (user !== who.user) continue;
    const begins = sent.conversation_id === null && here.id === null;
    if (fault) {
      if (begins) s.lines.value = [...s.lines.value, ...failedLines({ key, user, fault, ...sent })];
      continue;
    }
    const talk = begins ? here : new Talk(sent.conversation_id);
    talk.keys.add(key);
    const spoken: s.Line = { id: `u${key}`, role: "user", text: sent.message, state: "there" };
    const reply: s.Line = { id: `a${key}`, role: "assistant", text: "", state: "waiting", key, place: talk.id };
    if (begins) s.lines.value = [...s.lines.value, spoken, reply];
    order = order.then(async () => {
      if (s.who.value !== who || leaving) return;
      try {
        await hear({ ...sent, conversation_id: talk.id }, reply, talk);
      } catch (error) {
        if (leaving) return;
        const failed: s.Line = { ...reply, state: "failed", fault: faultOf(error) };
        if (begins) put(failed);
        else if (s.current.value === talk.id) s.lines.value = [...settledLines(), spoken, failed];
        missed(error);
      }
      unsettled(others(key));
      void list();
    });
  }
}

/** The lines without the place of an answer that is looked for. */
const settledLines = (): s.Line[] => s.lines.value.filter((one) => one.id !== "next");

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
  throw new Problem(0, "no_answer", "");
}

/** An answer is whole. What was new has a name now; who left meanwhile and came back reads it anew. */
function settle(reply: s.Line, place: string, talk: Talk): void {
  if (talk.id === null) unsettled(kept().map((one) => (talk.keys.has(one.key) ? { ...one, conversation_id: place } : one)));
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
