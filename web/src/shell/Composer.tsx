// The composer: send, queue, steer, stop; and the prompts that wait already.

import { stop, withdraw } from "../state/actions.ts";
import type { Queued, View } from "../state/model.ts";
import { may } from "../state/store.ts";
import { oneLine } from "../text/neutral.ts";
import { focusComposer } from "./focus.ts";
import { Send, Stop } from "./icons.tsx";
import { useSending } from "./sending.ts";
import { Writing } from "./Writing.tsx";
import { count } from "./words.ts";

export function Composer({ view, sessionId }: { view: View | null; sessionId: string }) {
  const { text, setText, going, submit } = useSending(sessionId);
  const running = Boolean(view?.running);
  if (!may("drive")) return <p class="composer-none faint">You watch this session: your token does not let you send prompts.</p>;

  const say = (steer: boolean): void => {
    submit(running ? (steer ? "next_step" : "queue") : "idle");
    focusComposer(); // the button that was pressed is off now
  };
  return (
    <section class="composer" aria-label="Your prompt">
      {view && view.queued.length > 0 && <Waiting sessionId={sessionId} queued={view.queued} running={running} />}
      <div class="composer-box">
        <Writing
          sessionId={sessionId}
          placeholder={running ? "Describe what comes next…" : "Describe a task…"}
          prompts={() => promptsOf(view)}
          text={text}
          setText={setText}
          send={say}
        />
        <div class="composer-row">
          <Hint running={running} sending={going[0] ?? ""} />
          {running && (
            <button type="button" class="button" disabled={!text.trim()} title="Send into the running turn (Ctrl+Enter)" onClick={() => say(true)}>
              Send now
            </button>
          )}
          {running && (
            <button type="button" class="button stop" onClick={() => { void stop(false); focusComposer(); }}>
              <Stop /> Stop
            </button>
          )}
          <button type="button" class="button primary" disabled={!text.trim()} onClick={() => say(false)}>
            <Send /> {running ? "Queue" : "Send"}
          </button>
        </div>
      </div>
    </section>
  );
}

function promptsOf(view: View | null): readonly string[] {
  return (view?.items ?? []).flatMap((item) => (item.kind === "prompt" ? [item.text] : []));
}

function Hint({ running, sending }: { running: boolean; sending: string }) {
  const words = sending
    ? `Sending: ${oneLine(sending, 60)}`
    : running
      ? "Enter to queue · Ctrl+Enter to send now · Esc to stop"
      : "Enter to send · Shift+Enter for a new line · @ for a file";
  return <span class="hint">{words}</span>;
}

/** What is sent into the turn comes before what was queued. */
function ordered(queued: readonly Queued[]): readonly Queued[] {
  const next = queued.filter((one) => one.when === "next_step");
  return [...next, ...queued.filter((one) => one.when !== "next_step")];
}

type WaitingProps = { sessionId: string; queued: readonly Queued[]; running: boolean };

function Waiting({ sessionId, queued, running }: WaitingProps) {
  return (
    <div class="queued" role="group" aria-label={count(queued.length, "prompt waits", "prompts wait")}>
      {ordered(queued).map((one) => (
        <p key={one.seq}>
          <span class="queued-tag">{one.when === "next_step" ? "into the turn" : running ? "queued" : "sent"}</span>
          <span class="queued-text">{oneLine(one.prompt, 400)}</span>
          {one.by !== "me" && <span class="faint">{oneLine(one.by, 64)}</span>}
          {one.when !== "next_step" && (
            <button type="button" class="queued-back" onClick={() => void withdraw(sessionId, one.seq)}>
              Take back
            </button>
          )}
        </p>
      ))}
    </div>
  );
}
