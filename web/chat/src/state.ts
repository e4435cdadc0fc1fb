// What the page knows, and nothing that it does: signals alone.

import { computed, signal } from "@preact/signals";
import { kept } from "../../src/shell/keeping.ts";
import type { About, Conversation, Me, Tasks, Who } from "./api.ts";
import { chosen, type Language, LANGUAGES, WORDS } from "./words.ts";

export type Gate = "checking" | "away" | "none" | "wrong" | "expired" | "left" | "in";

/** Why a reply did not come, which says what can be done about it; `detail` is the server's own sentence. */
export interface Fault {
  readonly kind: "again" | "tooMany" | "usedUp" | "gone" | "refused";
  readonly detail: string;
}

export interface Line {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly text: string;
  /** `waiting`: the reply is on its way; `failed`: it did not come, and why. */
  readonly state: "there" | "waiting" | "failed";
  readonly fault?: Fault;
  readonly key?: string;
  /** Where it was sent first: a message that is tried again may be known there. */
  readonly place?: string | null;
}

export const gate = signal<Gate>("checking");
export const token = signal("");
export const me = signal<Me | null>(null);
export const who = computed<Who>(() => ({ token: token.value, user: me.value?.user_id ?? "" }));

export const conversations = signal<readonly Conversation[]>([]);
export const moreConversations = signal("");
export const current = signal<string | null>(null);
export const lines = signal<readonly Line[]>([]);
export const earlier = signal("");
export const unread = signal(false); // the messages of this conversation could not be loaded
export const draft = signal("");

export const tasks = signal<Tasks>({ tasks: [], open: 0, done: 0, next: "" });
export const fresh = signal<ReadonlySet<number>>(new Set()); // tasks that have just changed
export const linked = signal(true);

export const tab = signal<"chat" | "tasks">("chat");
export const drawer = signal(false);
export const removing = signal<Conversation | null>(null);

const remembered = kept("chat.language");
export const language = signal<Language>(
  remembered in LANGUAGES ? (remembered as Language) : chosen(navigator.languages),
);
export const words = computed(() => WORDS[language.value]);

export const about = signal<About | null>(null);
/** What the assistant is called: the tasks in the reader's language, any other by its own name. */
export const title = computed(() => (about.value?.tasks ? words.value.tasks : (about.value?.title ?? words.value.chat)));
/** The languages that the assistant understands, named in the reader's, if that one is not among them. */
export const understood = computed(() => {
  const known = about.value?.languages ?? [];
  if (known.length === 0 || known.includes(language.value)) return "";
  const names = new Intl.DisplayNames([language.value], { type: "language" });
  return known.map((one) => names.of(one) ?? one).join(", ");
});
