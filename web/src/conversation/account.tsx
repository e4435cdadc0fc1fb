// The account of a turn: how it ended, what it took, and which files it changed.

import type { JSX } from "preact";
import { canBeUndone } from "../state/draft.ts";
import type { Actions, FileChange } from "../state/model.ts";
import { oneLine } from "../text/neutral.ts";
import { counted, duration, formatCost } from "../text/words.ts";
import type { TurnEntry } from "./entries.ts";
import { Fold } from "./folds.tsx";

const ENDS: Record<string, string> = {
  done: "Done",
  failed: "Failed",
  timeout: "Out of time",
  interrupted: "Stopped",
  budget: "Limit reached",
  stuck: "Stuck",
  max_tokens: "Cut off",
  parked: "Needs approval",
};

/** One line under a turn, and its files. */
export function Account({ entry, actions, canUndo }: { entry: TurnEntry; actions: Actions; canUndo: boolean }): JSX.Element {
  const { turn, key } = entry;
  const seconds = (Date.parse(turn.endedAt) - Date.parse(turn.startedAt)) / 1000;
  const facts = [
    seconds >= 1 ? duration(seconds) : "",
    turn.calls > 0 ? counted(turn.calls, "call") : "",
    turn.tokens > 0 ? counted(turn.tokens, "token") : "",
    turn.cost > 0 || turn.unpriced > 0 ? formatCost(turn.cost, turn.unpriced) : "",
  ].filter(Boolean);
  return (
    <div class={`account account-${turn.reason}`} data-turn={turn.number}>
      <p class="account-line" id={`who-${key}`}>
        <span>{ENDS[turn.reason] ?? oneLine(turn.reason, 40)}</span>
        {facts.map((fact) => <span key={fact}>{fact}</span>)}
        {turn.undone && <span class="tag">undone</span>}
      </p>
      {turn.files.length > 0 && (
        <Fold id={`${key}-files`} open={turn.files.length <= 5} label={`${counted(turn.files.length, "file")} changed`}>
          {() => <FileList files={turn.files} />}
        </Fold>
      )}
      {canUndo && canBeUndone(turn) && (
        <button type="button" class="quiet" onClick={() => actions.undo(turn.number)}>Undo…</button>
      )}
    </div>
  );
}

const HOW = { added: "new", changed: "changed", deleted: "deleted" } as const;

/** Files and what became of them. */
function FileList({ files }: { files: readonly FileChange[] }): JSX.Element {
  return (
    <ul class="files">
      {files.map((file) => (
        <li key={file.path}>
          <span class={`how how-${file.how}`}>{HOW[file.how]}</span> <code>{oneLine(file.path, 300)}</code>
        </li>
      ))}
    </ul>
  );
}
