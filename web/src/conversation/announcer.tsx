// Says to those who listen what is finished: a reply, a question, a mishap. What still streams is
// not read out word by word.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { oneLine } from "../text/neutral.ts";
import type { Entry } from "./entries.ts";
import { subject } from "./summary.ts";

const RECENT = 20; // entries at the end that are looked at

/** What is to be said of an entry as it stands now, or nothing yet. */
export function spoken(entry: Entry): string {
  switch (entry.kind) {
    case "text":
      return entry.streaming || entry.discarded ? "" : oneLine(entry.text, 600);
    case "call":
      return entry.call.approval?.state === "open"
        ? `Approval needed: ${entry.call.name} ${subject(entry.call)}`
        : entry.call.status === "failed" ? `${entry.call.name} failed` : "";
    case "notice":
      return entry.tone === "bad" || entry.tone === "warn" ? `${entry.text} ${entry.hint}` : "";
    default:
      return "";
  }
}

/** A polite live region. What was there when the page opened is not said. */
export function Announcer({ entries }: { entries: readonly Entry[] }): JSX.Element {
  const said = useRef<Map<string, string> | null>(null);
  const [words, setWords] = useState("");
  useEffect(() => {
    const recent = entries.slice(-RECENT).map((entry) => [entry.key, spoken(entry)] as const);
    const before = said.current;
    said.current = new Map(recent);
    if (before === null) return;
    const fresh = recent.filter(([key, text]) => text && before.get(key) !== text).map(([, text]) => text);
    if (fresh.length > 0) setWords(fresh.join(" "));
  }, [entries]);
  return <div class="unseen" role="status" aria-live="polite">{words}</div>;
}
