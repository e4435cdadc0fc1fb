// Prompts on their way: the field is free at once, they are sent one after the other, and what could
// not be sent comes back into the field. Whoever leaves meanwhile finds them as a draft.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { send } from "../state/actions.ts";
import type { When } from "../state/model.ts";
import { draftOf, keep, kept } from "./keeping.ts";
import { remember } from "./remembered.ts";
import { useDraft } from "./Writing.tsx";

/** How many prompts were sent into a conversation: whoever sends one wants to see what comes of it. */
export const sentHere = signal(0);

export interface Sending {
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly going: readonly string[];
  readonly submit: (when: When) => void;
}

export function useSending(sessionId: string): Sending {
  const [text, setText] = useDraft(sessionId);
  const [going, setGoing] = useState<readonly string[]>([]);
  const order = useRef(Promise.resolve());
  const here = useRef(true);
  const latest = useRef(text);
  latest.current = text;
  useEffect(() => () => void (here.current = false), []);
  useEffect(() => {
    if (going.length === 0) return undefined;
    const leave = () => keep(draftOf(sessionId), joined(...going, latest.current));
    addEventListener("pagehide", leave);
    return () => removeEventListener("pagehide", leave);
  }, [going, sessionId]);

  const deliver = async (prompt: string, when: When): Promise<void> => {
    if (await send(sessionId, prompt, when)) remember(prompt);
    else {
      if (here.current) setText(joined(prompt, latest.current));
      else keep(draftOf(sessionId), joined(prompt, kept(draftOf(sessionId))));
    }
    setGoing((others) => others.slice(1));
  };
  const submit = (when: When): void => {
    if (!text.trim()) return;
    setText("");
    if (when !== "queue") sentHere.value += 1;
    setGoing((others) => [...others, text]);
    order.current = order.current.then(() => deliver(text, when));
  };
  return { text, setText, going, submit };
}

/** What was written first stands first. */
export function joined(...texts: readonly string[]): string {
  return texts.filter((text) => text.trim()).join("\n");
}
