// The dialogs: a question, an undo with what it would do, the keys, what a session may do unasked.

import { useEffect, useRef } from "preact/hooks";
import { type UndoPreview, api } from "../api/client.ts";
import { Diff, byWhom } from "../conversation/index.ts";
import { type Pressed, closeDialog, dialog } from "../state/dialogs.ts";
import { opened, saySorry } from "../state/living.ts";
import type { Children } from "../state/model.ts";
import { neutral, oneLine } from "../text/neutral.ts";
import { clock } from "../text/words.ts";
import { KEYS } from "./keys.ts";
import { count } from "./words.ts";

export function Dialogs() {
  const open = dialog.value;
  if (!open) return null;
  if (open.kind === "confirm") {
    return (
      <Frame title={open.title} buttons={[{ label: open.yes, pressed: "yes", bad: open.bad }]}>
        <p>{neutral(open.text)}</p>
      </Frame>
    );
  }
  if (open.kind === "undo") return <UndoDialog preview={open.preview} />;
  if (open.kind === "grants") return <GrantsDialog />;
  return <HelpDialog />;
}

interface Button {
  readonly label: string;
  readonly pressed: Pressed;
  readonly bad?: boolean;
}

interface FrameProps {
  readonly title: string;
  readonly buttons?: readonly Button[]; // beside Cancel; the last is the main one
  readonly wide?: boolean;
  readonly children: Children;
}

function Frame({ title, buttons = [], wide, children }: FrameProps) {
  const bad = buttons.some((one) => one.bad); // then nothing happens by Enter
  const room = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    room.current?.showModal();
    room.current?.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  return (
    <dialog
      ref={room}
      class={`dialog${wide ? " wide" : ""}`}
      aria-labelledby="dialog-title"
      onCancel={(event) => {
        event.preventDefault();
        closeDialog();
      }}
      onKeyDown={(event) => event.stopPropagation()}
      onClick={(event) => event.target === room.current && closeDialog()}
    >
      <div class="dialog-inner">
        <h2 id="dialog-title">{title}</h2>
        <div class="dialog-body">{children}</div>
        <div class="dialog-row">
          <button type="button" class="button" data-first={bad || buttons.length === 0 ? "" : undefined} onClick={() => closeDialog()}>
            {buttons.length > 0 ? "Cancel" : "Close"}
          </button>
          {buttons.map((one, at) => (
            <button
              key={one.pressed}
              type="button"
              class={`button ${one.bad ? "danger" : at === buttons.length - 1 ? "primary" : ""}`}
              data-first={!bad && at === buttons.length - 1 ? "" : undefined}
              onClick={() => closeDialog(one.pressed)}
            >
              {one.label}
            </button>
          ))}
        </div>
      </div>
    </dialog>
  );
}

function UndoDialog({ preview }: { preview: UndoPreview }) {
  const { files, clashes, uncovered } = preview;
  return (
    <Frame title={`Undo turn ${preview.turn}?`} buttons={undoButtons(preview)} wide>
      {files.length > 0 && clashes.length === 0 && <p>This restores {files.length === 1 ? oneLine(files[0]!.path, 200) : `${files.length} files`} to how {files.length === 1 ? "it was" : "they were"} before that turn. The conversation stays.</p>}
      {clashes.length > 0 && (
        <div class="callout bad">
          <strong>{count(clashes.length, "file")} changed after that turn.</strong> Overwriting {clashes.length === 1 ? "it" : "them"} discards
          these later changes. To get them back, run <code>bridle undo --redo</code>.
        </div>
      )}
      {clashes.map((clash) => (
        <section key={clash.path} class="undo-file">
          <h3>
            <span class="file-how deleted">conflict</span> {oneLine(clash.path, 400)}
          </h3>
          <p class="faint">{oneLine(clash.why, 400)}</p>
          {clash.diff && <pre class="undo-clash" tabIndex={0} role="group" aria-label={`What would be lost if ${clash.path} is overwritten`}>{neutral(clash.diff)}</pre>}
        </section>
      ))}
      {uncovered.length > 0 && (
        <div class="callout warn">
          <strong>Not covered by undo:</strong> {neutral(uncovered.join("; "))}
        </div>
      )}
      {files.length > 0 && clashes.length > 0 && <p>{files.length === 1 ? "This file has" : `These ${files.length} files have`} not changed since and can be restored:</p>}
      {files.map((file) => (
        <section key={file.path} class="undo-file">
          <h3>
            <span class={`file-how ${file.how ?? "changed"}`}>{file.how ?? "changed"}</span> {oneLine(file.path, 400)}
          </h3>
          {file.diff && !file.diff.includes("@@") && <p class="faint">{neutral(file.diff)}</p>}
          {file.diff?.includes("@@") && <Diff diff={file.diff} label={`What undo changes in ${file.path}`} />}
        </section>
      ))}
    </Frame>
  );
}

function undoButtons({ files, clashes }: UndoPreview): readonly Button[] {
  if (clashes.length === 0) return files.length > 0 ? [{ label: `Undo ${count(files.length, "file")}`, pressed: "yes" }] : [];
  const changed = count(clashes.length, "changed file");
  if (files.length === 0) return [{ label: `Undo, overwriting ${changed}`, pressed: "overwrite", bad: true }];
  return [
    { label: `Undo all ${files.length + clashes.length} files, overwriting ${changed}`, pressed: "overwrite", bad: true },
    { label: `Undo ${count(files.length, "file")}, keep ${changed}`, pressed: "skip" },
  ];
}

function HelpDialog() {
  return (
    <Frame title="Keys" wide>
      <div class="keys">
        {KEYS.map(([title, keys]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {keys.map(([key, what]) => (
                <div key={key}>
                  <dt>
                    {key.split(" ").map((one) => (
                      <kbd key={one}>{one}</kbd>
                    ))}
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Frame>
  );
}

function GrantsDialog() {
  const one = opened.value;
  const grants = one?.detail.value?.grants ?? [];
  useEffect(() => void one?.refresh(), [one]);
  const revoke = (id: string): void => {
    if (one) void api.revoke(one.id, id).then(() => one.refresh(), saySorry);
  };
  return (
    <Frame title="Permissions of this session">
      {grants.length === 0 && <p>Only its mode and your rules apply: nothing else was allowed for the whole session.</p>}
      <ul class="grants">
        {grants.map((grant) => (
          <li key={grant.id}>
            <span>
              {neutral(grant.what || grant.rule || grant.id)}
              <span class="faint"> allowed by {byWhom(grant.by ?? "me")}{grant.until && `, until ${clock(grant.until)}`}</span>
            </span>
            <button type="button" class="button small" onClick={() => revoke(grant.id)}>
              Revoke
            </button>
          </li>
        ))}
      </ul>
    </Frame>
  );
}
