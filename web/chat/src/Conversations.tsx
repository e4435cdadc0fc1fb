// The conversations of the person, the newest first; and the question before one is deleted.

import { useEffect, useRef } from "preact/hooks";
import { Close, Plus } from "../../src/shell/icons.tsx";
import { oneLine } from "../../src/text/neutral.ts";
import { Chooser } from "./Chooser.tsx";
import { go, list, remove, signOut } from "./living.ts";
import { conversations, current, me, moreConversations, removing, words } from "./state.ts";

export function Conversations() {
  const w = words.value;
  return (
    <nav class="conversations" aria-label={w.conversations}>
      <button class="button new" onClick={() => go(null)}>
        <Plus /> {w.newOne}
      </button>
      {conversations.value.length === 0 && <p class="faint pad">{w.noConversations}</p>}
      <ul class="list">
        {conversations.value.map((one) => (
          <li key={one.id} class={one.id === current.value ? "row here" : "row"}>
            <button class="name" dir="auto" aria-current={one.id === current.value ? "page" : undefined} onClick={() => go(one.id)}>
              <bdi>{oneLine(one.title, 80) || "…"}</bdi>
            </button>
            <button
              class="button plain small square"
              aria-label={`${w.remove}: ${oneLine(one.title, 80)}`}
              onClick={() => (removing.value = one)}
            >
              <Close />
            </button>
          </li>
        ))}
      </ul>
      {moreConversations.value && (
        <button class="button plain small" onClick={() => void list(true)}>
          {w.more}
        </button>
      )}
      <div class="foot only-narrow">
        <bdi class="user">{me.value?.user_id}</bdi>
        <span class="space" />
        <Chooser />
        <button class="button small" onClick={() => signOut()}>
          {w.signOut}
        </button>
      </div>
    </nav>
  );
}

export function Removing() {
  const one = removing.value;
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (one) box.current?.showModal();
    else box.current?.close();
  }, [one]);
  const w = words.value;
  return (
    <dialog ref={box} class="sure" aria-labelledby="sure" onClose={() => (removing.value = null)}>
      <p id="sure">{w.removeSure}</p>
      <p class="faint">
        <bdi>{one ? oneLine(one.title, 120) : ""}</bdi>
      </p>
      <div class="choices">
        <button class="button" onClick={() => (removing.value = null)}>
          {w.cancel}
        </button>
        <button class="button danger" onClick={() => one && void remove(one.id)}>
          {w.removeYes}
        </button>
      </div>
    </dialog>
  );
}
