// Some words to a question.

import type { JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

interface WordFormProps {
  readonly label: string;
  readonly button: string;
  readonly blocked: boolean;
  readonly say: (word: string) => void;
  readonly back?: (() => void) | undefined;
  readonly focus?: boolean;
}

/** A field, and a button that says what is in it. */
export function WordForm({ label, button, blocked, say, back, focus = true }: WordFormProps): JSX.Element {
  const [word, setWord] = useState("");
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    if (focus) field.current?.focus(); // at once: the next key is a letter of the answer
  }, []);
  const send = () => {
    if (!blocked && word.trim()) say(word.trim());
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && back) {
      event.preventDefault();
      event.stopPropagation();
      back();
    }
  };
  return (
    <div class="word">
      <label for={id}>{label}</label>
      <textarea id={id} ref={field} rows={2} dir="auto" value={word} onInput={(event) => setWord(event.currentTarget.value)} onKeyDown={pressed} />
      <div class="answers">
        <button type="button" class="choice choice-main" disabled={blocked || !word.trim()} onClick={send}>{button}</button>
        {back && <button type="button" class="choice" data-grows onClick={back}>Back</button>}
      </div>
    </div>
  );
}
