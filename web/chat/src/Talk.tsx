// The conversation: what was said, oldest first, and the field to say more.

import { useEffect, useRef } from "preact/hooks";
import { Send } from "../../src/shell/icons.tsx";
import { neutral } from "../../src/text/neutral.ts";
import { go, read, say } from "./living.ts";
import { about, current, draft, earlier, type Fault, language, type Line, lines, me, understood, unread, words } from "./state.ts";
import { counted, RTL, type Words } from "./words.ts";

const NEAR = 120; // pixels from the end, within which the end is followed

export function Talk() {
  const scroll = useRef<HTMLDivElement>(null);
  const last = lines.value.at(-1);
  const atEnd = useRef(true);
  useEffect(() => {
    const box = scroll.current;
    if (box && (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR + box.clientHeight || last?.state === "waiting")) {
      box.scrollTop = box.scrollHeight;
      atEnd.current = true; // at once: a resize may come before the event of this scroll
    }
  }, [last?.id, last?.text, last?.state]);
  const size = useRef(""); // of the box, when it was last put at its place
  useEffect(() => {
    const box = scroll.current;
    if (!box) return;
    const stay = new ResizeObserver(() => {
      if (atEnd.current) box.scrollTop = box.scrollHeight; // also when a phone's keyboard opens
      size.current = sizeOf(box);
    });
    stay.observe(box);
    return () => stay.disconnect();
  }, []);
  const onScroll = (event: Event): void => {
    const box = event.currentTarget as HTMLElement;
    if (sizeOf(box) !== size.current) return; // the window changed, not the reader's place: the observer is called next
    atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
  };
  return (
    <main class="talk">
      <div class="scroll" ref={scroll} tabIndex={0} role="region" aria-label={words.value.chat} onScroll={onScroll}>
        {lines.value.length === 0 && !current.value ? <Hello /> : <Lines />}
      </div>
      <Field />
    </main>
  );
}

const sizeOf = (box: HTMLElement): string => `${box.clientWidth}x${box.clientHeight}`;

function Hello() {
  const w = words.value;
  const said = about.value;
  const text = said?.about || (said?.tasks ? w.helloText : "");
  return (
    <div class="hello">
      <img src="/chat/favicon.svg" alt="" width="40" height="40" />
      <h2 dir="auto">{said?.opening || (said?.tasks ? w.hello : w.helloAny)}</h2>
      {text && (
        <p class="faint" dir="auto">
          {text}
        </p>
      )}
      <div class="tries">
        {said?.suggestions.map((one) => (
          <button key={one} class="button" dir="auto" onClick={() => say(one)}>
            {one}
          </button>
        ))}
      </div>
    </div>
  );
}

function Lines() {
  const w = words.value;
  return (
    <>
      {earlier.value && current.value && (
        <button class="button plain small earlier" onClick={(event) => void readEarlier(event)}>
          {w.older}
        </button>
      )}
      {unread.value && current.value && (
        <div class="failed-note" role="alert">
          <p>{w.notLoaded}</p>
          <button class="button small" onClick={() => void read(current.value!, "")}>
            {w.again}
          </button>
        </div>
      )}
      <div role="log" aria-live="polite" class="lines">
        {lines.value.map((one, at) => (
          <Message key={one.id} line={one} before={lines.value[at - 1]} last={at === lines.value.length - 1} />
        ))}
      </div>
    </>
  );
}

/** What comes is put above what is read, which stays where it is. */
async function readEarlier(event: Event): Promise<void> {
  const box = (event.currentTarget as HTMLElement).closest(".scroll");
  const below = box ? box.scrollHeight - box.scrollTop : 0;
  await read(current.value!, earlier.value);
  requestAnimationFrame(() => box && (box.scrollTop = box.scrollHeight - below));
}

interface MessageProps {
  readonly line: Line;
  readonly before: Line | undefined;
  readonly last: boolean;
}

function Message({ line, before, last }: MessageProps) {
  const w = words.value;
  const phrase = last && line.role === "assistant" && line.state === "there" ? phraseOf(line.text) : "";
  return (
    <article class={`line ${line.role} ${line.state}`}>
      <span class="sr">{line.role === "user" ? w.youSaid : w.theySaid}</span>
      {line.text && (
        <p class="text" dir={directionOf(line)}>
          {neutral(line.text)}
        </p>
      )}
      {line.state === "waiting" && !line.text && (
        <p class="thinking">
          <span class="dots" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          <span class="sr">{w.thinking}</span>
        </p>
      )}
      {line.state === "failed" && line.fault && <Failed fault={line.fault} line={line} text={before?.text ?? ""} />}
      {phrase && (
        <button class="button small phrase" onClick={() => fill(phrase)}>
          {w.answerWith} “{phrase}”
        </button>
      )}
    </article>
  );
}

/** What the assistant says from right to left begins there, also if a title from left to right comes first. */
function directionOf(line: Line): "rtl" | "auto" {
  return RTL.has(language.value) && line.role === "assistant" && /[\u0590-\u08ff]/.test(line.text) ? "rtl" : "auto";
}

interface FailedProps {
  readonly fault: Fault;
  readonly line: Line;
  readonly text: string;
}

/** Why there is no answer, and the one thing to do about it. */
function Failed({ fault, line, text }: FailedProps) {
  const w = words.value;
  const [label, act] = remedy(fault, w, line, text);
  return (
    <div class="failed-note" role="alert">
      <p dir="auto">{reason(fault, w)}</p>
      {label && (
        <button class="button small" onClick={act}>
          {label}
        </button>
      )}
    </div>
  );
}

function reason(fault: Fault, w: Words): string {
  if (fault.kind === "again") return w.notAnswered;
  return fault.kind === "refused" ? fault.detail || w.refused : w[fault.kind];
}

function remedy(fault: Fault, w: Words, line: Line, text: string): [string, () => void] {
  if (fault.kind === "usedUp") return ["", () => undefined];
  if (fault.kind === "refused") return [w.edit, () => fill(text)];
  if (fault.kind === "gone") return [w.newOne, () => (go(null), fill(text))];
  return [w.again, () => say(text, line)];
}

/** The words that a question asks for at its end. They are put into the field, and never sent by themselves. */
export function phraseOf(text: string): string {
  const quoted = /['"‘“«]([^'"‘’“”«»]{3,60})['"’”»][^'"‘“«]*$/u.exec(text)?.[1] ?? "";
  return /^(yes|sí|نعم) /iu.test(quoted) ? quoted : "";
}

function fill(text: string): void {
  draft.value = text;
  document.getElementById("say")?.focus();
}

function Field() {
  const w = words.value;
  const box = useRef<HTMLTextAreaElement>(null);
  const over = draft.value.length - (me.value?.longest_message ?? 10_000);
  useEffect(() => {
    const field = box.current;
    if (!field) return;
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, 200)}px`;
  }, [draft.value]);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) box.current?.focus(); // on a phone it would bring up the keyboard
  }, [current.value === null]);
  const submit = (event?: Event): void => {
    event?.preventDefault();
    const text = draft.value.trim();
    if (!text || over > 0) return;
    draft.value = "";
    say(text);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  return (
    <form class="field-row" onSubmit={submit}>
      {understood.value && (
        <p class="only-some" role="note">
          {w.understands} {understood.value}.
        </p>
      )}
      <div class="composer">
        <label class="sr" for="say">
          {w.write}
        </label>
        <textarea
          id="say"
          ref={box}
          rows={1}
          dir={draft.value ? "auto" : undefined}
          placeholder={about.value?.tasks ? w.placeholder : w.placeholderAny}
          value={draft.value}
          aria-describedby="say-hint"
          onInput={(event) => (draft.value = event.currentTarget.value)}
          onKeyDown={onKey}
        />
        <button class="button primary" type="submit" disabled={!draft.value.trim() || over > 0}>
          <Send /> <span class="only-wide">{w.send}</span>
          <span class="sr only-narrow">{w.send}</span>
        </button>
      </div>
      <p id="say-hint" class={over > 0 ? "hint bad" : "hint"}>
        {over > 0 ? counted(language.value, over, w.tooLong) : w.hint}
      </p>
    </form>
  );
}
