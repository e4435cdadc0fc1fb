// The sessions at the left: live state, children below their parents, filter and search.

import { computed, signal } from "@preact/signals";
import { loadLines } from "../state/living.ts";
import type { SessionLine } from "../state/model.ts";
import { goTo, toFragment } from "../state/route.ts";
import { current, cursor, listed, may, pendings, sessions } from "../state/store.ts";
import { COMMAND, CONTROL } from "../text/keyboard.ts";
import { focus, focusComposer } from "./focus.ts";
import { Bell, Close, Down, Half, Moon, Plus, Right, Search, Sun } from "./icons.tsx";
import { Hits } from "./Hits.tsx";
import { type Branch, type Filter, branches, inOrder } from "./listing.ts";
import { listOpen, now, trayOpen } from "./rooms.ts";
import { nextTheme, theme } from "./theme.ts";
import { shortModel } from "../text/words.ts";
import { ago, count, folderOf, spent, stateWords, titleOf } from "./words.ts";

const filter = signal<Filter>("all");
const words = signal("");
const folded = signal<ReadonlyMap<string, boolean>>(new Map());

const shown = computed(() => branches(sessions.value.values(), filter.value, words.value.trim()));
const order = computed(() => inOrder(shown.value, unfolded));

/** Unfolded by hand, or because something goes on below. */
function unfolded(branch: Branch): boolean {
  const live = branch.children.some((one) => one.state === "waiting" || one.id === current.value);
  return folded.value.get(branch.line.id) ?? live;
}

/** The session before or after the one that is shown. */
export function step(by: number): void {
  const at = order.value.indexOf(current.value);
  const next = order.value[at < 0 ? 0 : Math.min(order.value.length - 1, Math.max(0, at + by))];
  if (next) goTo(next);
}

export function Sessions() {
  const found = shown.value;
  return (
    <nav class={`sessions${listOpen.value ? " open" : ""}`} aria-label="Sessions">
      <Top />
      <SearchField />
      <Filters />
      <ul class="session-list" aria-label={words.value ? "Sessions that fit" : "All sessions"}>
        {found.map((branch) => (
          <BranchRow key={branch.line.id} branch={branch} />
        ))}
      </ul>
      {found.length === 0 && <Nothing />}
      {cursor.value && !words.value && filter.value === "all" && (
        <button type="button" class="button plain more-sessions" onClick={() => void loadLines(cursor.value)}>
          Older sessions
        </button>
      )}
      {words.value.trim().length > 1 && <Hits asked={words.value.trim()} />}
    </nav>
  );
}

function begin(): void {
  listOpen.value = false;
  focus("composer", () => !document.getElementById("main")?.matches(".session-page"));
}

function Top() {
  const waiting = pendings.value.length;
  const label = { auto: "Light or dark: as the system", light: "Light", dark: "Dark" }[theme.value];
  return (
    <div class="sessions-top">
      <a class="brand" href="#/">
        <img src="/favicon.svg" alt="" width="20" height="20" />
        <span>bridle</span>
      </a>
      <button
        type="button"
        class={`button plain square${waiting ? " asks" : ""}`}
        aria-label={waiting ? `${count(waiting, "approval")} needed` : "No approvals needed"}
        title={`Approvals (${COMMAND}A)`}
        aria-expanded={trayOpen.value}
        onClick={() => (trayOpen.value = !trayOpen.value)}
      >
        <Bell />
        {waiting > 0 && <span class="count">{waiting}</span>}
      </button>
      <button type="button" class="button plain square" aria-label={`${label}. Change`} title={label} onClick={nextTheme}>
        {theme.value === "auto" ? <Half /> : theme.value === "light" ? <Sun /> : <Moon />}
      </button>
      {may("drive") && (
        <a class="button primary square" href="#/" aria-label="New session" title={`New session (${COMMAND}N)`} onClick={begin}>
          <Plus />
        </a>
      )}
      <button type="button" class="button plain square only-narrow" aria-label="Close the list" onClick={() => (listOpen.value = false)}>
        <Close />
      </button>
    </div>
  );
}

function SearchField() {
  return (
    <div class="search">
      <Search />
      <input
        id="search"
        type="search"
        placeholder="Search all sessions"
        aria-label="Search all sessions"
        title={`Search (${CONTROL}K)`}
        value={words.value}
        onInput={(event) => (words.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          if (words.value) words.value = "";
          else focusComposer();
        }}
      />
    </div>
  );
}

const FILTERS: readonly [Filter, string][] = [
  ["all", "All"],
  ["running", "Running"],
  ["waiting", "Waiting"],
  ["done", "Done"],
  ["failed", "Failed"],
];

function Filters() {
  const counts = new Map<string, number>();
  for (const line of sessions.value.values()) counts.set(line.state, (counts.get(line.state) ?? 0) + 1);
  return (
    <div class="filters" role="group" aria-label="Show sessions that are">
      {FILTERS.map(([key, label]) => (
        <button key={key} type="button" class="chip" aria-pressed={filter.value === key} onClick={() => (filter.value = key)}>
          {label}
          {key === "waiting" && counts.get(key) ? <span class="chip-count">{counts.get(key)}</span> : null}
        </button>
      ))}
    </div>
  );
}

function Nothing() {
  if (!listed.value) return <p class="faint pad">Loading…</p>;
  const all = filter.value === "all" && !words.value;
  return <p class="faint pad">{all ? "No sessions yet. Describe a task to start one." : "No title matches."}</p>;
}

function BranchRow({ branch }: { branch: Branch }) {
  const open = unfolded(branch);
  const { line, children } = branch;
  const toggle = (): void => {
    folded.value = new Map(folded.value).set(line.id, !open);
  };
  return (
    <li>
      <Row line={line} />
      {children.length > 0 && (
        <button type="button" class="children-toggle" aria-expanded={open} onClick={toggle}>
          {open ? <Down /> : <Right />} {children.length} {children.length === 1 ? "child session" : "child sessions"}
        </button>
      )}
      {open && children.length > 0 && (
        <ul class="session-children" aria-label={`Children of ${titleOf(line)}`}>
          {children.map((child) => (
            <li key={child.id}>
              <Row line={child} />
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function Row({ line }: { line: SessionLine }) {
  const here = line.id === current.value;
  return (
    <a
      class="session"
      href={toFragment(line.id)}
      data-session={line.id}
      data-state={line.state}
      aria-current={here ? "page" : undefined}
      onClick={() => (listOpen.value = false)}
    >
      <span class={`dot ${line.state}`} aria-hidden="true" />
      <span class="session-title">{titleOf(line)}</span>
      {line.waiting > 0 && <span class="count">{line.waiting}</span>}
      <span class="session-more">
        <span class={`session-state ${line.state}`}>{stateWords(line)}</span>
        {line.state !== "waiting" && <span>{(line.agent !== "loop" && line.agent) || shortModel(line.model) || folderOf(line.workspace)}</span>}
        {spent(line.cost, line.unpriced, line.tokens) && <span>{spent(line.cost, line.unpriced, line.tokens)}</span>}
        <span>{ago(line.updatedAt, now.value)}</span>
      </span>
    </a>
  );
}
