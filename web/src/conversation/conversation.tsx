// The conversation: a long feed of entries, with what helps to move in it.

import type { JSX } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ConversationProps, View } from "../state/model.ts";
import { Announcer } from "./announcer.tsx";
import { entriesOf, entryAt, estimate, type Entries } from "./entries.ts";
import { EntryView } from "./entry.tsx";
import { Feed } from "./feed.tsx";
import { Find } from "./find.tsx";
import { Folds } from "./folds.tsx";

/** The conversation of a session, as it is or as it was. */
export function Conversation(props: ConversationProps): JSX.Element {
  return <Talk key={props.view.sessionId} {...props} />; // another session begins anew
}

function Talk(props: ConversationProps): JSX.Element {
  const { view, actions, role, past, loadingOlder, target } = props;
  const [allShown, setAllShown] = useState(false); // also what was taken back
  const entries = useEntries(view, allShown);
  const feed = useRef<Feed>(null);
  const [folds] = useState(() => new Map<string, boolean>());
  const [stuck, setStuck] = useState(true);
  const [finding, setFinding] = useState(false);
  const marked = useTarget(target, entries, feed);
  useFindKey(() => setFinding(true), finding);
  useQuestionKey(entries, feed);
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
        {loadingOlder && <p class="older" role="status">Loading what was before …</p>}
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

/** Does this entry begin what the model says, after something that was not its own words? */
function leads(entries: Entries, index: number): boolean {
  for (let at = index - 1; at >= 0; at--) {
    const before = entries.list[at]!;
    if (before.kind === "thinking" || before.kind === "notice" || before.kind === "taken") continue;
    return before.kind === "prompt" || before.kind === "account";
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

/** `q` goes to the question that waits longest. */
function useQuestionKey(entries: Entries, feed: { readonly current: Feed | null }): void {
  const known = useRef(entries);
  known.current = entries;
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "q" || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if ((event.target as Element).closest?.("input, textarea, select, dialog, [role=dialog]")) return;
      const asking = known.current.list.find((entry) => entry.kind === "call" && entry.call.approval?.state === "open");
      if (!asking) return;
      event.preventDefault();
      feed.current?.show(asking.key, false);
      requestAnimationFrame(() => feed.current?.node(asking.key)?.querySelector<HTMLElement>("section.question")?.focus({ preventScroll: true }));
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
