// The conversation: a long feed of entries, with what helps to move in it.

import type { JSX } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ConversationProps, View } from "../state/model.ts";
import { commandOf } from "../text/keyboard.ts";
import { Announcer } from "./announcer.tsx";
import { focusUnasked } from "./armed.ts";
import { entriesOf, entryAt, estimate, type Entries, type Entry } from "./entries.ts";
import { EntryView } from "./entry.tsx";
import { Feed } from "./feed.tsx";
import { Find } from "./find.tsx";
import { Folds } from "./folds.tsx";

/** The conversation of a session, as it is or as it was. */
export function Conversation(props: ConversationProps): JSX.Element {
  return <Talk key={props.view.sessionId} {...props} />; // another session begins anew
}

function Talk(props: ConversationProps): JSX.Element {
  const { view, actions, role, past, loadingOlder, sent, target } = props;
  const [allShown, setAllShown] = useState(false); // also what was taken back
  const entries = useEntries(view, allShown);
  const feed = useRef<Feed>(null);
  const [folds] = useState(() => new Map<string, boolean>());
  const [stuck, setStuck] = useState(true);
  const [finding, setFinding] = useState(false);
  const marked = useTarget(target, entries, feed);
  useFindKey(() => setFinding(true), finding);
  useApprovalFocus(entries, past, feed);
  const seen = useRef(sent);
  useEffect(() => {
    if (sent !== seen.current) feed.current?.toEnd();
    seen.current = sent;
  }, [sent]);
  const more = view.first > 1;
  const older = () => {
    if (more && !loadingOlder) void actions.loadOlder();
  };
  const showTaken = useCallback(() => setAllShown(true), []);
  const entry = (key: string, index: number) => {
    const found = entries.byKey.get(key);
    return found ? (
      <EntryView
        entry={found} actions={actions} role={role} past={past} led={leads(entries, index)} marked={marked === key} showTaken={showTaken}
      />
    ) : null;
  };
  return (
    <Folds.Provider value={folds}>
      <div class={past ? "conversation conversation-past" : "conversation"}>
        {finding && (
          <Find
            entries={entries.list} more={more} loadOlder={older} show={(key) => feed.current?.show(key)}
            node={(key) => feed.current?.node(key) ?? null} close={() => setFinding(false)}
          />
        )}
        {loadingOlder && <p class="older" role="status">Loading older messages…</p>}
        <Feed
          handle={feed} keys={entries.keys} estimate={(key) => estimate(entries.byKey.get(key))} entry={entry}
          label="Conversation" busy={view.running > 0} onNearTop={older} onStuck={setStuck}
        />
        {!stuck && (
          <button type="button" class="newest" onClick={() => feed.current?.toEnd()}>
            <span aria-hidden="true">↓</span> {view.running > 0 ? "Follow" : "Newest"}
          </button>
        )}
        {!past && <Announcer entries={entries.list} />}
      </div>
    </Folds.Provider>
  );
}

function useEntries(view: View, all: boolean): Entries {
  const known = useRef<{ view: View; all: boolean; entries: Entries } | null>(null);
  if (known.current?.view !== view || known.current.all !== all) {
    known.current = { view, all, entries: entriesOf(view, known.current?.entries ?? null, all) };
  }
  return known.current.entries;
}

/** Does this entry begin what the model says, after something that was not its own words, or does not count? */
function leads(entries: Entries, index: number): boolean {
  for (let at = index - 1; at >= 0; at--) {
    const before = entries.list[at]!;
    if (before.kind === "thinking" || before.kind === "notice" || before.kind === "taken") continue;
    return before.kind === "prompt" || before.kind === "account" || before.discarded;
  }
  return true;
}

/** Goes to a record when another one is wanted; the key of the entry that it belongs to. */
function useTarget(target: number, entries: Entries, feed: { readonly current: Feed | null }): string {
  const shown = useRef(0);
  const entry = target > 0 ? entryAt(entries.list, target) : null;
  useEffect(() => {
    if (!entry || !feed.current || shown.current === target) return;
    shown.current = target;
    feed.current.show(entry.key, true);
  }, [target, entry?.key]);
  return entry?.key ?? "";
}

/** Ctrl+F opens our own search; pressed again there, the browser's opens. It does from the moment in
 *  which the conversation is there, and not some frames later. */
function useFindKey(open: () => void, isOpen: boolean): void {
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const wanted = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key === "f";
      if (!wanted || isOpen) return;
      event.preventDefault();
      open();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [isOpen]);
}

const QUIET = 2000; // milliseconds without a key press, after which nobody is typing

function approvalsIn(entries: Entries): readonly Entry[] {
  return entries.list.filter((entry) => entry.kind === "call" && entry.call.approval?.state === "open");
}

/** Is the focus nowhere, or in a composer in which nothing is written? */
function isFocusFree(): boolean {
  const active = document.activeElement;
  return !active || active.matches("body, #main") || (active instanceof HTMLTextAreaElement && active.id === "composer" && !active.value);
}

/** Is it a key for an approval that has the focus, and not text for a field of it? */
function isAnswer(event: KeyboardEvent): boolean {
  const target = event.target as Element;
  return target.closest("section.question") !== null && !target.matches("input, textarea");
}

/** Whoever answers an approval is led to the next one, and after the last back to the composer. An
 *  approval that arrives gets the focus by itself if its place is shown, the composer is empty and
 *  nobody is typing. To answer another approval is not typing. */
function useApprovalFocus(entries: Entries, past: boolean, feed: { readonly current: Feed | null }): void {
  const keys = past ? [] : approvalsIn(entries).map((entry) => entry.key);
  const waiting = useRef(keys);
  const typing = useRef(0); // the timer that runs while somebody types
  const offered = useRef(new Set<string>());
  const answering = useRef(false); // the focus was in an approval last
  const led = useRef(false); // the end was followed before an approval was shown
  waiting.current = keys;
  const show = useCallback((focus: (node: HTMLElement) => void) => {
    const key = waiting.current[0];
    if (!key || !feed.current) return;
    led.current ||= feed.current.follows;
    offered.current.add(key);
    feed.current.reveal(key, () => {
      const node = feed.current?.node(key)?.querySelector<HTMLElement>("section.question");
      if (node) focus(node);
    });
  }, []);
  const offer = useCallback(() => {
    const isNew = !offered.current.has(waiting.current[0] ?? "");
    if (isNew && !typing.current && isFocusFree() && (feed.current?.follows || led.current)) show(focusUnasked);
  }, []);
  useEffect(() => {
    const focused = (event: FocusEvent) => {
      answering.current = (event.target as Element).closest("section.question") !== null;
    };
    const pressed = (event: KeyboardEvent) => {
      if (!isAnswer(event)) {
        clearTimeout(typing.current);
        typing.current = window.setTimeout(() => {
          typing.current = 0;
          offer();
        }, QUIET);
      }
      if (commandOf(event) !== "q" || waiting.current.length === 0) return;
      event.preventDefault();
      show((node) => node.focus({ preventScroll: true }));
    };
    document.addEventListener("focusin", focused);
    document.addEventListener("keydown", pressed, true);
    return () => {
      clearTimeout(typing.current);
      document.removeEventListener("focusin", focused);
      document.removeEventListener("keydown", pressed, true);
    };
  }, []);
  useEffect(() => {
    const answered = answering.current && document.activeElement === document.body;
    if (keys.length === 0) {
      if (led.current) feed.current?.toEnd();
      if (answered) document.getElementById("composer")?.focus();
      led.current = false;
    } else if (answered) show((node) => node.focus({ preventScroll: true }));
    else offer();
  }, [keys.join(" ")]);
}
