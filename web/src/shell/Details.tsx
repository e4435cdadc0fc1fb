// What belongs to a session beside its conversation: todo list, files, children, turns.

import { actions } from "../state/actions.ts";
import { canBeUndone } from "../state/draft.ts";
import type { Child, SessionLine, Todo, Turn, View } from "../state/model.ts";
import { toFragment } from "../state/route.ts";
import { may, sessions } from "../state/store.ts";
import { neutral, oneLine } from "../text/neutral.ts";
import { Check, Close } from "./icons.tsx";
import { detailsDrawer, detailsOpen } from "./rooms.ts";
import { count, endWords, spent, stateWords, thousands, titleOf } from "./words.ts";

export function Details({ view, line }: { view: View; line: SessionLine }) {
  if (!detailsOpen.value && !detailsDrawer.value) return null;
  const kids = childrenOf(view, line);
  const partial = view.first > 1; // older records are not loaded
  const bare = view.todos.length + view.files.length + kids.length + line.turn === 0;
  return (
    <aside class={`details${detailsDrawer.value ? " open" : ""}${detailsOpen.value ? "" : " shut"}`} aria-label="Details of the session">
      <button type="button" class="button plain square only-drawer" aria-label="Close the details" onClick={() => (detailsDrawer.value = false)}>
        <Close />
      </button>
      {view.todos.length > 0 && <Todos todos={view.todos} />}
      {view.files.length > 0 && <Files view={view} partial={partial} />}
      {kids.length > 0 && <Kids kids={kids} />}
      {line.turn > 0 && <Turns view={view} total={Math.max(line.turn, view.turns.length)} partial={partial} />}
      {bare && <p class="faint">The todo list, changed files, child sessions and turns of this session will appear here.</p>}
    </aside>
  );
}

function Todos({ todos }: { todos: readonly Todo[] }) {
  const done = todos.filter((todo) => todo.status === "completed").length;
  return (
    <section aria-label="Todo list">
      <h2>
        Todo <span class="faint">{done} of {todos.length}</span>
      </h2>
      <ul class="todos">
        {todos.map((todo, index) => (
          <li key={index} class={`todo-line ${todo.status}`}>
            <span class="todo-box" aria-hidden="true">
              {todo.status === "completed" && <Check />}
            </span>
            <span class="sr">{{ pending: "To do: ", in_progress: "Doing now: ", completed: "Done: " }[todo.status]}</span>
            <span>{neutral(todo.content)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const HOW = { added: "A", changed: "M", deleted: "D" } as const;

function Files({ view, partial }: { view: View; partial: boolean }) {
  return (
    <section aria-label="Files changed">
      <h2>
        Files <span class="faint">{view.files.length}{partial && " in the turns below"}</span>
        {may("drive") && view.turns.some(canBeUndone) && (
          <button type="button" class="button plain small push" onClick={() => actions.undo(0)}>
            Undo…
          </button>
        )}
      </h2>
      <ul class="changed-files">
        {view.files.slice(0, 200).map((file) => (
          <li key={file.path} title={oneLine(`${file.path}: ${file.how}`, 400)}>
            <span class={`file-how ${file.how}`} aria-label={file.how}>
              {HOW[file.how]}
            </span>
            <span class="path">
              <bdi>{oneLine(file.path, 400)}</bdi>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface Kid {
  readonly id: string;
  readonly title: string;
  readonly state: SessionLine["state"];
  readonly words: string;
  readonly cost: number;
  readonly unpriced: number;
  readonly tokens: number;
}

/** Children as the log tells of them, with their live state where they are listed. */
function childrenOf(view: View, line: SessionLine): readonly Kid[] {
  const told = view.items.flatMap((item) => (item.kind === "call" ? item.call.children : []));
  const known = new Map(told.map((child) => [child.sessionId, child as Child | null]));
  for (const one of sessions.value.values()) if (one.parent === line.id && !known.has(one.id)) known.set(one.id, null);
  return [...known].map(([id, child]): Kid => {
    const live = sessions.value.get(id);
    const state = live?.state ?? (child?.state === "running" ? "running" : child?.state === "failed" ? "failed" : "done");
    const title = live?.title || child?.prompt || (live ? titleOf(live) : id);
    const used = { cost: live?.cost ?? child?.cost ?? 0, unpriced: live?.unpriced ?? child?.unpriced ?? 0, tokens: live?.tokens ?? child?.tokens ?? 0 };
    return { id, title, state, words: live ? stateWords(live) : state, ...used };
  });
}

function Kids({ kids }: { kids: readonly Kid[] }) {
  return (
    <section aria-label="Child sessions">
      <h2>
        Children <span class="faint">{kids.length}</span>
      </h2>
      <ul class="kids">
        {kids.map((kid) => (
          <li key={kid.id}>
            <a href={toFragment(kid.id)}>
              <span class={`dot ${kid.state}`} aria-hidden="true" />
              <span class="kid-title">{oneLine(kid.title, 200)}</span>
              <span class="faint">
                {[kid.words, spent(kid.cost, kid.unpriced, kid.tokens)].filter(Boolean).join(" · ")}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function account(turn: Turn, view: View): string {
  const how = turn.reason ? endWords(turn.reason) : view.running === turn.number ? (view.approvals.length > 0 ? "needs approval" : "running") : "";
  const tokens = turn.tokens ? `${thousands(turn.tokens)} tokens` : "";
  const words = [how, count(turn.calls, "call"), tokens, spent(turn.cost, turn.unpriced, turn.tokens), turn.undone ? "undone" : ""];
  return words.filter(Boolean).join(" · ");
}

function Turns({ view, total, partial }: { view: View; total: number; partial: boolean }) {
  const newest = view.turns.slice(-200).reverse();
  return (
    <section aria-label="Turns">
      <h2>
        Turns <span class="faint">{total}</span>
      </h2>
      <ol class="turns">
        {newest.map((turn) => (
          <li key={turn.number}>
            <a href={toFragment(view.sessionId, turn.seq)}>
              <span class="turn-number">{turn.number}</span>
              <span class="turn-prompt">{oneLine(turn.prompt, 200) || "…"}</span>
              <span class="faint">
                {account(turn, view)}
              </span>
            </a>
            {may("drive") && canBeUndone(turn) && (
              <button type="button" class="button plain small" onClick={() => actions.undo(turn.number)}>
                Undo {count(turn.files.length, "file")}…
              </button>
            )}
          </li>
        ))}
      </ol>
      {partial && (
        <button type="button" class="button plain small" onClick={() => void actions.loadOlder()}>
          Load earlier turns
        </button>
      )}
    </section>
  );
}
