// The head of a session: its title, what carries it, what it costs, and what can be done with it.

import { useRef, useState } from "preact/hooks";
import { type Choice, type SessionDetail, api } from "../api/client.ts";
import { actions, change, compact, download, remove, stop } from "../state/actions.ts";
import { show } from "../state/dialogs.ts";
import { leave } from "../state/living.ts";
import type { Mode, SessionLine, View } from "../state/model.ts";
import type { Opened } from "../state/opened.ts";
import { choices, may, pendings } from "../state/store.ts";
import { formatCost } from "../text/words.ts";
import { COMMAND } from "../text/keyboard.ts";
import { oneLine } from "../text/neutral.ts";
import { focusComposer } from "./focus.ts";
import { Bell, Clock, List, More, Panel, Pen } from "./icons.tsx";
import { type Entry, Menu } from "./Menu.tsx";
import { listOpen, timelineOpen, toggleDetails, toggleTimeline, trayOpen } from "./rooms.ts";
import { count, folderOf, spent, stateWords, thousands, titleOf } from "./words.ts";

interface Props {
  readonly line: SessionLine;
  readonly view: View | null;
  readonly opened: Opened;
}

export function Header({ line, view, opened }: Props) {
  const meters = <Meters line={line} view={view} detail={opened.detail.value} />;
  return (
    <header class="head">
      <div class="head-row">
        <ListButton />
        <Title line={line} />
        <span class={`state-pill ${line.state}`}>{stateWords(line)}</span>
        <span class="space" />
        <div class="only-wide">{meters}</div>
        <button type="button" class="button plain square only-wide" aria-label="Timeline" title={`Timeline (${COMMAND}T)`} aria-pressed={timelineOpen.value} onClick={toggleTimeline}>
          <Clock />
        </button>
        <button type="button" class="button plain square only-wide" aria-label="Details" title={`Details: todo list, files, child sessions, turns (${COMMAND}D)`} onClick={toggleDetails}>
          <Panel />
        </button>
        <Menu label="More to do with this session" entries={entries(line, view)}>
          <More />
        </Menu>
      </div>
      <div class="head-row low">
        <Pickers line={line} />
        <div class="only-narrow push">{meters}</div>
      </div>
    </header>
  );
}

/** Where it is narrow, the list is behind a button, and so is what waits. */
export function ListButton() {
  const waiting = pendings.value.length;
  return (
    <>
      <button type="button" class="button plain square only-narrow" aria-label="Sessions" aria-expanded={listOpen.value} onClick={() => (listOpen.value = true)}>
        <List />
      </button>
      {waiting > 0 && (
        <button type="button" class="button plain square only-narrow asks" aria-label={`${count(waiting, "approval")} needed`} onClick={() => (trayOpen.value = true)}>
          <Bell />
          <span class="count">{waiting}</span>
        </button>
      )}
    </>
  );
}

function entries(line: SessionLine, view: View | null): readonly Entry[] {
  const drive = may("drive");
  const found: (Entry | false)[] = [
    drive && { label: "Undo the last changes…", act: () => actions.undo(0) },
    drive && { label: "Fork from the end", act: () => void actions.fork(view?.last ?? line.seq) },
    drive && { label: "Compact context", act: () => void compact(line.id), off: Boolean(view?.running) },
    drive && { label: "Permissions of this session…", act: () => void show({ kind: "grants" }) },
    drive && Boolean(view?.running) && { label: "Stop the turn", act: () => void stop(true) },
    { label: timelineOpen.value ? "Hide the timeline" : "Show the timeline", act: toggleTimeline },
    { label: "Details", act: toggleDetails },
    { label: "Export as Markdown", act: () => void download(line.id, "markdown") },
    { label: "Export the log (JSONL)", act: () => void download(line.id, "jsonl") },
    { label: "Copy session id", act: () => void actions.copy(line.id) },
    { label: "Keys…", act: () => void show({ kind: "help" }) },
    { label: "Sign out", act: () => void api.logout().then(() => leave("left"), () => undefined) },
    may("admin") && { label: "Delete…", act: () => void remove(line.id), bad: true },
  ];
  return found.filter((one): one is Entry => one !== false);
}

function Title({ line }: { line: SessionLine }) {
  const [draft, setDraft] = useState<string | null>(null);
  const leaving = useRef(false);
  if (draft === null) {
    return (
      <h1 class="title">
        <button type="button" class="title-button" disabled={!may("drive")} title="Rename" onClick={() => setDraft(line.title)}>
          <span>{titleOf(line)}</span> {may("drive") && <Pen />}
        </button>
      </h1>
    );
  }
  const done = (save: boolean): void => {
    if (leaving.current) return;
    leaving.current = true;
    if (save && draft.trim() && draft.trim() !== line.title) void change(line.id, { title: draft.trim() });
    setDraft(null);
    leaving.current = false;
  };
  return (
    <input
      class="title-input"
      aria-label="Title of the session"
      value={draft}
      maxLength={200}
      ref={(input) => input?.focus()}
      onInput={(event) => setDraft(event.currentTarget.value)}
      onBlur={() => done(true)}
      onKeyDown={(event) => {
        if (event.key === "Enter") done(true);
        if (event.key !== "Escape") return;
        event.stopPropagation();
        done(false);
      }}
    />
  );
}

function Meters({ line, view, detail }: { line: SessionLine; view: View | null; detail: SessionDetail | null }) {
  const tokens = view?.meter.contextTokens ?? 0;
  const size = view?.meter.contextWindow || (detail?.context?.window ?? 0);
  const most = detail?.limits?.["maxSessionCost"] ?? 0;
  const cost = Math.max(line.cost, view?.meter.cost ?? 0);
  const unpriced = Math.max(line.unpriced, view?.meter.unpriced ?? 0);
  const used = Math.max(line.tokens, view?.meter.tokens ?? 0);
  const full = size ? Math.min(1, tokens / size) : 0;
  const said = size ? `${Math.round(full * 100)} % of the model's window of ${thousands(size)} tokens` : `${thousands(tokens)} tokens in the model's window`;
  return (
    <div class="meters">
      <span class="meter-cost" title={`${thousands(used)} tokens used in all`}>
        {spent(cost, unpriced, used)}
        {most > 0 && <span class="faint"> of {formatCost(most)}</span>}
      </span>
      {(size > 0 || tokens > 0) && (
        <span class="meter" role="meter" aria-label="Context" aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(full * 100)} aria-valuetext={said} title={said}>
          {size > 0 && (
            <span class={`meter-bar${full > 0.85 ? " full" : ""}`}>
              <span class="meter-fill" style={{ width: `${Math.max(2, full * 100)}%` }} />
            </span>
          )}
          <span class="meter-text">{size ? `${Math.round(full * 100)}%` : `${thousands(tokens)} tokens`}<span class="only-wide">{size ? " context" : " of context"}</span></span>
        </span>
      )}
    </div>
  );
}

export const MODES: readonly [Mode, string, string][] = [
  ["plan", "Plan", "reads and plans; changes nothing"],
  ["ask", "Ask", "asks before anything that changes something"],
  ["edits", "Edits", "edits files in the workspace; asks before the rest"],
  ["auto", "Auto", "asks nothing; what is denied stays denied"],
];

function Pickers({ line }: { line: SessionLine }) {
  const off = !may("drive");
  const { models, agents } = choices.value;
  return (
    <div class="pickers" role="group" aria-label="Model, agent and mode">
      <Picker label="Model" value={line.model} choices={models} off={off} pick={(model) => void change(line.id, { model })} />
      {(agents.length > 1 || line.agent) && (
        <Picker label="Agent" value={line.agent} choices={agents} off={off} pick={(agent) => void change(line.id, { agent })} />
      )}
      <label class="picker" title={MODES.find(([mode]) => mode === line.mode)?.[2] ?? ""}>
        <span>Mode</span>
        <select
          id="mode"
          value={line.mode || "ask"}
          disabled={off}
          onChange={(event) => {
            const wanted = event.currentTarget.value as Mode;
            event.currentTarget.value = line.mode || "ask"; // it is another once the server says so
            leavePicker(event.currentTarget);
            void change(line.id, { mode: wanted });
          }}
        >
          {MODES.map(([mode, label, what]) => (
            <option key={mode} value={mode} title={what} disabled={mode === "auto" && !may("admin")}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <span class="workspace" title={oneLine(line.workspace, 400)}>
        {folderOf(line.workspace)}
      </span>
      {line.holder && line.holder !== "here" && <span class="holder">held by {oneLine(line.holder, 80)}</span>}
    </div>
  );
}

function Option({ choice }: { choice: Choice }) {
  return (
    <option value={choice.name} disabled={Boolean(choice.whyNot)} title={oneLine(choice.whyNot || choice.label, 400)}>
      {nameOf(choice)}
    </option>
  );
}

function nameOf({ name }: Choice): string {
  if (name === "loop") return "built in";
  return name.startsWith("/") ? folderOf(name) : oneLine(name, 80);
}

/** After a choice with the mouse the next keys are for the prompt. With the keyboard more choices may follow. */
function leavePicker(select: HTMLSelectElement): void {
  if (!select.matches(":focus-visible")) focusComposer();
}

interface PickerProps {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly off: boolean;
  readonly pick: (name: string) => void;
}

export function Picker({ label, value, choices: found, off, pick }: PickerProps) {
  const usual = value ? undefined : found.find((one) => one.default);
  const chosen = usual?.name ?? value;
  const known = found.some((one) => one.name === chosen);
  return (
    <label class="picker">
      <span>{label}</span>
      <select value={chosen} disabled={off} onChange={(event) => {
          leavePicker(event.currentTarget);
          pick(event.currentTarget.value);
        }}>
        {!known && <option value={value}>{oneLine(value, 80) || "as the server has it"}</option>}
        {found.map((one) => one.whyNot === "" && <Option key={one.name} choice={one} />)}
        {found.some((one) => one.whyNot) && (
          <optgroup label="Not available here">
            {found.map((one) => one.whyNot !== "" && <Option key={one.name} choice={one} />)}
          </optgroup>
        )}
      </select>
    </label>
  );
}
