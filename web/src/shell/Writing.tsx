// The field in which a prompt is written: grows with it, keeps a draft, knows history and mentions.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { composing } from "../state/actions.ts";
import { target } from "../state/store.ts";
import { offerComposer } from "./focus.ts";
import { draftOf, keep, kept } from "./keeping.ts";
import { mentionAt, withPath } from "./mention.ts";
import { Mentions, usePaths } from "./Mentions.tsx";
import { Remembered, once, sentBefore } from "./remembered.ts";

interface Props {
  readonly sessionId: string; // "" for one that has not begun
  readonly workspace?: string; // for one that has not begun; "" is the server's first
  readonly placeholder: string;
  readonly prompts: () => readonly string[]; // what was sent in this session
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly send: (steer: boolean) => void;
}

export function useDraft(sessionId: string): [string, (text: string) => void] {
  const key = draftOf(sessionId);
  const [text, setText] = useState(() => kept(key));
  const known = useRef(key);
  if (known.current !== key) {
    known.current = key;
    setText(kept(key));
  }
  return [
    text,
    (next) => {
      keep(key, next.slice(0, 100_000));
      setText(next);
    },
  ];
}

export function Writing({ sessionId, workspace = "", placeholder, prompts, text, setText, send }: Props) {
  const field = useRef<HTMLTextAreaElement>(null);
  const past = useRef<Remembered | null>(null);
  const cursor = useRef<number | null>(null);
  const [place, setPlace] = useState(0);
  const [shut, setShut] = useState(false);
  const [choice, setChoice] = useState(0);
  const mention = useMemo(() => (shut ? null : mentionAt(text, place)), [text, place, shut]);
  const paths = usePaths(sessionId, workspace, mention?.query ?? null);
  const open = mention !== null && paths.length > 0;

  useComposing(field, text, setText);
  useEffect(() => (target.peek() ? undefined : offerComposer()), []);
  useLayoutEffect(() => {
    fit(field.current);
    if (cursor.current !== null) field.current?.setSelectionRange(cursor.current, cursor.current);
    cursor.current = null;
  }, [text]);
  useEffect(() => setChoice(0), [mention?.query]);

  const write = (next: string, at: number): void => {
    cursor.current = at;
    setText(next);
    setPlace(at);
  };
  const pick = (path: string): void => {
    if (!mention) return;
    const next = withPath(text, place, mention, path);
    write(next.text, next.cursor);
  };
  const onMention = (event: KeyboardEvent): boolean => {
    if (!open) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      setChoice((choice + (event.key === "ArrowDown" ? 1 : -1) + paths.length) % paths.length);
    } else if (event.key === "Enter" || event.key === "Tab") pick(paths[choice] ?? paths[0]!);
    else if (event.key === "Escape") setShut(true);
    else return false;
    return true;
  };
  const onHistory = (event: KeyboardEvent): boolean => {
    const by = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
    const area = field.current;
    if (!by || !area || event.shiftKey || !atEdge(area, by)) return false;
    past.current ??= new Remembered(once(sentBefore(), prompts()), text);
    const found = past.current.move(by as -1 | 1);
    if (found === null) return false;
    write(found, by < 0 ? 0 : found.length);
    return true;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const isCommand = event.altKey && event.key.startsWith("Arrow"); // the next session, the previous one
    if (event.isComposing || isCommand) return;
    const plainEnter = event.key === "Enter" && !event.shiftKey && !event.altKey;
    if (onMention(event) || onHistory(event)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (plainEnter) {
      event.preventDefault();
      send(event.ctrlKey || event.metaKey);
    }
  };
  const seen = (): void => setPlace(field.current?.selectionStart ?? 0);
  return (
    <div class="writing">
      {open && <Mentions paths={paths} at={choice} pick={pick} />}
      <textarea
        id="composer"
        ref={field}
        rows={1}
        dir="auto"
        value={text}
        placeholder={placeholder}
        aria-label={placeholder}
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-controls={open ? "mentions" : undefined}
        aria-activedescendant={open ? `mention-${choice}` : undefined}
        enterkeyhint="send"
        onInput={(event) => {
          past.current = null;
          setShut(false);
          setText(event.currentTarget.value);
          seen();
        }}
        onKeyUp={seen}
        onClick={seen}
        onKeyDown={onKeyDown}
      />
    </div>
  );
}

/** Words that come from elsewhere on the page, such as a quote. */
function useComposing(field: { current: HTMLTextAreaElement | null }, text: string, setText: (text: string) => void): void {
  const more = composing.value;
  useEffect(() => {
    if (more === null) return;
    composing.value = null;
    setText(text.trim() ? `${text.trimEnd()}\n\n${more}` : more);
    field.current?.focus();
  }, [more]);
}

/** The arrow keys leave the text only at its first or last line. */
function atEdge(area: HTMLTextAreaElement, by: number): boolean {
  if (area.selectionStart !== area.selectionEnd) return false;
  return by < 0 ? !area.value.slice(0, area.selectionStart).includes("\n") : !area.value.slice(area.selectionStart).includes("\n");
}

function fit(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
}
