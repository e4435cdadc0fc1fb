// Where a session begins: what to do, where, with which model, in which mode.

import { useState } from "preact/hooks";
import { api } from "../api/client.ts";
import { send } from "../state/actions.ts";
import { saySorry } from "../state/living.ts";
import type { Mode } from "../state/model.ts";
import { goTo } from "../state/route.ts";
import { choices, may, putLines } from "../state/store.ts";
import { CONTROL } from "../text/keyboard.ts";
import { oneLine } from "../text/neutral.ts";
import { signedInAs } from "../conversation/index.ts";
import { ListButton, MODES, Picker } from "./Header.tsx";
import { Send } from "./icons.tsx";
import { remember } from "./remembered.ts";
import { useDraft, Writing } from "./Writing.tsx";
import { folderOf } from "./words.ts";

interface Wanted {
  readonly workspace: string;
  readonly model: string;
  readonly agent: string;
  readonly mode: Mode;
}

export function Start() {
  const [text, setText] = useDraft("");
  const [busy, setBusy] = useState(false);
  const [wanted, setWanted] = useState<Wanted>({ workspace: "", model: "", agent: "", mode: "ask" });
  const begin = async (): Promise<void> => {
    if (!text.trim() || busy) return;
    setBusy(true);
    const id = await create(wanted).catch(saySorry);
    if (id && (await send(id, text, "idle"))) {
      remember(text);
      setText("");
    }
    if (id) goTo(id);
    setBusy(false);
  };
  return (
    <main class="start" id="main" tabIndex={-1}>
      <div class="start-top only-narrow">
        <ListButton />
      </div>
      <div class="start-card">
        <h1>{may("drive") ? "What would you like to do?" : "Your sessions"}</h1>
        {may("drive") ? (
          <>
            <div class="composer-box">
              <Writing sessionId="" workspace={wanted.workspace} placeholder="Describe a task…" prompts={() => []} text={text} setText={setText} send={() => void begin()} />
              <div class="composer-row">
                <span class="hint">Enter to start · Shift+Enter for a new line · @ for a file</span>
                <button type="button" class="button primary" disabled={!text.trim() || busy} onClick={() => void begin()}>
                  <Send /> {busy ? "Starting…" : "Start"}
                </button>
              </div>
            </div>
            <How wanted={wanted} setWanted={setWanted} />
          </>
        ) : (
          <p>Choose a session at the left. Your token lets you watch{may("answer") ? " and answer questions" : ""}.</p>
        )}
        <p class="faint">
          Signed in as {signedInAs()}.{" "}
          <span class="only-keyboard">
            <kbd>{CONTROL}/</kbd> shows all keys.
          </span>
        </p>
      </div>
    </main>
  );
}

function How({ wanted, setWanted }: { wanted: Wanted; setWanted: (wanted: Wanted) => void }) {
  const { models, agents, workspaces } = choices.value;
  const set = (more: Partial<Wanted>): void => setWanted({ ...wanted, ...more });
  const first = (all: typeof models): string => all.find((one) => one.default)?.name ?? "";
  return (
    <div class="pickers">
      {workspaces.length === 1 && <span title={oneLine(workspaces[0]!.name, 400)}>Folder <span class="workspace">{folderOf(workspaces[0]!.name)}</span></span>}
      {workspaces.length > 1 && <Picker label="Folder" value={wanted.workspace || first(workspaces)} choices={workspaces} off={false} pick={(workspace) => set({ workspace })} />}
      {models.length > 0 && <Picker label="Model" value={wanted.model || first(models)} choices={models} off={false} pick={(model) => set({ model })} />}
      {agents.length > 1 && <Picker label="Agent" value={wanted.agent || first(agents)} choices={agents} off={false} pick={(agent) => set({ agent })} />}
      <label class="picker">
        <span>Mode</span>
        <select value={wanted.mode} onChange={(event) => set({ mode: event.currentTarget.value as Mode })}>
          {MODES.map(([mode, label, what]) => (
            <option key={mode} value={mode} disabled={mode === "auto" && !may("admin")}>
              {label}: {what}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** What was not chosen is left to the server. */
async function create(wanted: Wanted): Promise<string> {
  const made = await api.create({
    ...(wanted.workspace ? { workspacePath: wanted.workspace } : {}),
    ...(wanted.model ? { model: wanted.model } : {}),
    ...(wanted.agent ? { agent: wanted.agent } : {}),
    ...(wanted.mode !== "ask" ? { mode: wanted.mode } : {}),
  });
  putLines([made]);
  return made.id;
}
