// The session that is shown: head, conversation, timeline, composer, details.

import { explain } from "../api/problem.ts";
import { Conversation, Timeline } from "../conversation/index.ts";
import { actions } from "../state/actions.ts";
import type { View } from "../state/model.ts";
import type { Opened } from "../state/opened.ts";
import { currentLine, may, role, target } from "../state/store.ts";
import { Composer } from "./Composer.tsx";
import { Details } from "./Details.tsx";
import { Header, ListButton } from "./Header.tsx";
import { timelineOpen } from "./rooms.ts";
import { sentHere } from "./sending.ts";

export function Session({ opened }: { opened: Opened }) {
  const live = opened.view.value;
  const past = opened.past.value;
  const line = currentLine.value ?? opened.detail.value;
  if (opened.problem.value) return <Missing opened={opened} />;
  if (!line) {
    return (
      <main class="session-page" id="main" tabIndex={-1} aria-busy="true">
        <p class="faint pad">Opening…</p>
      </main>
    );
  }
  const view = past ?? live;
  return (
    <>
      <main class="session-page" id="main" tabIndex={-1} aria-label="Session">
        <Header line={line} view={live} opened={opened} />
        {timelineOpen.value && live && <Timeline view={live} at={opened.at.value} actions={actions} />}
        {view ? (
          <Conversation
            key={opened.id}
            view={view}
            actions={actions}
            role={role.value}
            past={past !== null}
            loadingOlder={opened.loadingOlder.value}
            sent={sentHere.value}
            target={target.value}
          />
        ) : (
          <p class="faint pad" aria-busy="true">
            Opening…
          </p>
        )}
        {past ? <PastNote view={past} at={opened.at.value ?? past.last} /> : <Composer key={opened.id} view={live} sessionId={opened.id} />}
      </main>
      {view && <Details view={view} line={line} />}
    </>
  );
}

const WHEN = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" } as const;

function PastNote({ view, at }: { view: View; at: number }) {
  const stamp = view.items.at(-1)?.at ?? "";
  return (
    <div class="past-note" role="status">
      <span>
        As it was at record {at}
        {stamp && `, ${new Date(stamp).toLocaleString([], WHEN)}`}
      </span>
      <span class="space" />
      {may("drive") && (
        <>
          <button type="button" class="button small" onClick={() => void actions.fork(at)}>
            Fork here
          </button>
          <button type="button" class="button small" onClick={() => void actions.rewind(at)}>
            Rewind to here…
          </button>
        </>
      )}
      <button type="button" class="button primary small" onClick={() => actions.seek(null)}>
        Back to now
      </button>
    </div>
  );
}

function Missing({ opened }: { opened: Opened }) {
  const problem = opened.problem.value;
  return (
    <main class="session-page" id="main" tabIndex={-1}>
      <div class="head-row pad">
        <ListButton />
      </div>
      <div class="missing">
        <h1>{problem?.status === 404 ? "This session does not exist" : "This session cannot be shown"}</h1>
        <p>{explain(problem)}</p>
        <a class="button primary" href="#/">
          Start another session
        </a>
      </div>
    </main>
  );
}
