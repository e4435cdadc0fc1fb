// What a program or a tool said. Long output shows its end (or its beginning), and all of it when
// that is wanted. Nothing in it is obeyed.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { plainOutput } from "../text/neutral.ts";
import { counted } from "../text/words.ts";
import { useFold } from "./folds.tsx";

const SHOWN = 12; // lines
const LONGEST = 300; // characters of a line that is shown while it is folded
const MOST = 200_000; // characters that are shown at all

interface OutputProps {
  readonly id: string;
  readonly text: string;
  readonly end: boolean; // is the end what matters?
  readonly cut?: boolean; // was the beginning left out already?
  readonly label: string;
  readonly live?: boolean;
}

/** The output, folded where it is long. */
export function Output({ id, text, end, cut = false, label, live = false }: OutputProps): JSX.Element | null {
  const [all, toggle] = useFold(`${id}-all`, false);
  const lines = useMemo(() => plainOutput(text.slice(-MOST)).replace(/\n+$/, "").split("\n"), [text]);
  if (text.trim() === "") return null;
  const long = lines.length > SHOWN || lines.some((line) => line.length > LONGEST);
  const part = end ? lines.slice(-SHOWN) : lines.slice(0, SHOWN);
  const shown = all || !long ? lines : part.map(shortened);
  const hidden = lines.length - shown.length;
  return (
    <div class={live ? "output output-live" : "output"}>
      {end && hidden > 0 && <p class="left-out">{counted(hidden, "line")} before</p>}
      {cut && all && <p class="left-out">the beginning was left out</p>}
      <pre tabIndex={0} role="group" aria-label={label}>{shown.join("\n")}</pre>
      {!end && hidden > 0 && <p class="left-out">{counted(hidden, "line")} more</p>}
      {long && (
        <button type="button" class="quiet more" aria-expanded={all} onClick={toggle}>
          {all ? "Show less" : `Show all ${counted(lines.length, "line")}`}
        </button>
      )}
    </div>
  );
}

function shortened(line: string): string {
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
