// Where words were found in conversations, session by session.

import { useEffect, useState } from "preact/hooks";
import { type Hit, api } from "../api/client.ts";
import { toFragment } from "../state/route.ts";
import { neutral, oneLine } from "../text/neutral.ts";
import { listOpen } from "./rooms.ts";

const SHOWN = 3; // of each session, until somebody wants more

export function Hits({ asked }: { asked: string }) {
  const hits = useHits(asked);
  const groups = Map.groupBy(hits ?? [], (hit) => hit.sessionId);
  return (
    <section class="hits" aria-label="Found in conversations">
      <h2>In conversations</h2>
      <p class="faint" role="status">
        {hits === null ? "Searching…" : hits.length === 0 ? "No results." : ""}
      </p>
      {[...groups].map(([id, found]) => (
        <Group key={id} found={found} asked={asked} />
      ))}
    </section>
  );
}

function Group({ found, asked }: { found: readonly Hit[]; asked: string }) {
  const [all, setAll] = useState(false);
  const more = found.length - SHOWN;
  return (
    <div class="hit-group">
      <h3 class="hit-title">{oneLine(found[0]?.title ?? "", 200) || "Untitled session"}</h3>
      {found.slice(0, all ? undefined : SHOWN).map((hit) => (
        <a key={hit.seq} class="hit" href={toFragment(hit.sessionId, hit.seq)} onClick={() => (listOpen.value = false)}>
          <span class="hit-text">{marked(neutral(hit.text), asked)}</span>
        </a>
      ))}
      {more > 0 && !all && (
        <button type="button" class="button plain small" onClick={() => setAll(true)}>
          {more} more
        </button>
      )}
    </div>
  );
}

function useHits(asked: string): readonly Hit[] | null {
  const [hits, setHits] = useState<readonly Hit[] | null>(null);
  useEffect(() => {
    setHits(null);
    const control = new AbortController();
    const wait = setTimeout(() => {
      api.search(asked, control.signal).then(
        (found) => setHits(found.hits),
        () => control.signal.aborted || setHits([]),
      );
    }, 200);
    return () => {
      clearTimeout(wait);
      control.abort();
    };
  }, [asked]);
  return hits;
}

/** The text with what was looked for marked in it. */
function marked(text: string, asked: string) {
  const at = text.toLowerCase().indexOf(asked.toLowerCase());
  if (at < 0) return text;
  const before = at > 60 ? `…${text.slice(at - 60, at)}` : text.slice(0, at);
  return [before, <mark key="mark">{text.slice(at, at + asked.length)}</mark>, text.slice(at + asked.length)];
}
