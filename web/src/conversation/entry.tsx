// One entry of the conversation: who, what, and what can be done with it.

import type { JSX } from "preact";
import type { Actions, NoticeItem, PromptItem, Role, TextItem, ThinkingItem } from "../state/model.ts";
import { neutral } from "../text/neutral.ts";
import { clock, counted, shortModel, size } from "../text/words.ts";
import { Account } from "./account.tsx";
import { CallCard, MediaNote } from "./call.tsx";
import type { Entry, TakenEntry } from "./entries.ts";
import { Fold } from "./folds.tsx";
import { Markdown } from "./markdown.tsx";
import { memo } from "./memo.tsx";
import { Menu, type Deed } from "./menu.tsx";
import { named } from "./who.ts";

export interface EntryProps {
  readonly entry: Entry;
  readonly actions: Actions;
  readonly role: Role;
  readonly past: boolean;
  readonly led: boolean; // does it begin what one speaker says?
  readonly marked: boolean; // was it looked for?
  readonly showTaken: () => void; // show what was taken back, too
}

/** What stands in the article of an entry. */
export const EntryView = memo(function EntryView(props: EntryProps): JSX.Element {
  const { entry, marked } = props;
  const gone = "gone" in entry && entry.gone ? " gone" : "";
  const discarded = "discarded" in entry && entry.discarded ? " discarded" : "";
  return (
    <div class={`entry-box entry-${entry.kind}${gone}${discarded}${marked ? " entry-marked" : ""}`}>
      <Inside {...props} />
    </div>
  );
});

function Inside(props: EntryProps): JSX.Element {
  const { entry, actions, role, past } = props;
  switch (entry.kind) {
    case "prompt":
      return <Prompt item={entry} {...props} />;
    case "text":
      return <Reply item={entry} {...props} />;
    case "thinking":
      return <Thinking item={entry} />;
    case "call":
      return <CallCard item={entry} actions={actions} role={role} past={past} />;
    case "notice":
      return <Notice item={entry} actions={actions} />;
    case "taken":
      return <Taken entry={entry} show={props.showTaken} />;
    case "account":
      return <Account entry={entry} actions={actions} canUndo={!past && drives(role)} />;
  }
}

function drives(role: Role): boolean {
  return role === "drive" || role === "admin";
}

function deedsOf(item: PromptItem | TextItem, { actions, role, past }: EntryProps): Deed[] {
  const deeds: Deed[] = [{ label: "Copy", act: () => void actions.copy(item.text) }];
  if (item.kind === "prompt") deeds.push({ label: "Copy into the prompt", act: () => actions.compose(item.text) });
  if (!drives(role)) return deeds;
  const mayFork = item.forkAt > 0 || item.kind === "prompt";
  if (mayFork) deeds.push({ label: "Fork from here", act: () => void actions.fork(item.forkAt) });
  if (mayFork && !past) deeds.push({ label: "Rewind to here", act: () => void actions.rewind(item.forkAt) });
  return deeds;
}

function Prompt(props: EntryProps & { item: PromptItem }): JSX.Element {
  const { item } = props;
  return (
    <div class="prompt">
      <header class="who">
        <strong id={`who-${item.key}`}>{named(item.by)}</strong>
        {item.steered && <span class="tag">sent into the running turn</span>}
        <time dateTime={item.at}>{clock(item.at)}</time>
        <Menu label="What to do with this prompt" deeds={deedsOf(item, props)} />
      </header>
      <div class="prompt-text" dir="auto">{neutral(item.text)}</div>
      {item.media.map((media, at) => <MediaNote key={at} media={media} />)}
    </div>
  );
}

function Reply(props: EntryProps & { item: TextItem }): JSX.Element {
  const { item, led } = props;
  return (
    <div class="reply">
      <header class={led || item.discarded ? "who" : "who who-quiet"}>
        <strong id={`who-${item.key}`}>
          {shortModel(item.model) || "Assistant"}
          {item.discarded && <Discarded />}
        </strong>
        <time dateTime={item.at}>{clock(item.at)}</time>
        {!item.streaming && <Menu label="What to do with this reply" deeds={deedsOf(item, props)} />}
      </header>
      <Markdown text={item.text} streaming={item.streaming} />
    </div>
  );
}

/** Says of a part of a reply that it no longer counts. */
function Discarded(): JSX.Element {
  return <> <span class="tag tag-warn">discarded</span></>;
}

function Thinking({ item }: { item: ThinkingItem }): JSX.Element {
  const label = (
    <span id={`who-${item.key}`}>
      {item.streaming ? "Thinking" : "Thought"} <span class="faint">{size(item.text)}</span>
      {item.discarded && <Discarded />}
    </span>
  );
  return (
    <Fold id={item.key} class={item.streaming ? "thinking thinking-now" : "thinking"} label={label}>
      {() => <div class="thinking-text" dir="auto">{neutral(item.text)}</div>}
    </Fold>
  );
}

function Taken({ entry, show }: { entry: TakenEntry; show: () => void }): JSX.Element {
  return (
    <div class="taken">
      <span id={`who-${entry.key}`}>{counted(entry.count, "entry", "entries")} taken back by a rewind</span>
      <button type="button" class="quiet" data-grows onClick={show}>Show</button>
    </div>
  );
}

function Notice({ item, actions }: { item: NoticeItem; actions: Actions }): JSX.Element {
  return (
    <div class={`notice notice-${item.tone}`} data-notice={item.what}>
      <p id={`who-${item.key}`}>{neutral(item.text)}</p>
      {item.hint && <p class="notice-hint">{neutral(item.hint)}</p>}
      {item.sessionId && (
        <button type="button" class="quiet" onClick={() => actions.openSession(item.sessionId)}>Open that session</button>
      )}
    </div>
  );
}
