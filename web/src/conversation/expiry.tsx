// How long a question still counts.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { duration } from "../text/words.ts";

/** Seconds until then; null where there is no end. */
export function left(expires: string, now = Date.now()): number | null {
  const end = Date.parse(expires);
  return Number.isNaN(end) ? null : (end - now) / 1000;
}

const HOUR = 3600;

/** What is far away is told in hours. */
function said(seconds: number): string {
  return seconds > 2 * HOUR ? `${Math.round(seconds / HOUR)} h` : duration(seconds);
}

/** `expires in 4 min`, counted down while it is seen. */
export function Countdown({ expires }: { expires: string }): JSX.Element | null {
  const [, tick] = useState(0);
  const seconds = left(expires);
  const pace = seconds !== null && seconds > 3600 ? 30_000 : 1000;
  useEffect(() => {
    if (seconds === null || seconds <= 0) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), pace);
    return () => clearInterval(timer);
  }, [expires, pace, seconds === null || seconds <= 0]);
  if (seconds === null) return null;
  if (seconds <= 0) return <span class="expiry expiry-over">expired: denied</span>;
  return <span class={seconds < 60 ? "expiry expiry-soon" : "expiry"}>expires in {said(seconds)}</span>;
}
