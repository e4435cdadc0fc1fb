// A stream that does not end: when it breaks, it is taken up again from where it was.
//
// EventSource cannot say why it broke, nor wait as long as it should; so this is a fetch whose body
// is read as it comes. A line on which nothing arrives for too long counts as broken, too.
// A browser has six connections for a server, over all its tabs: a stream that nobody looks at rests
// after a while and is taken up, without a word, when somebody does.

import { signed } from "./key.ts";
import { Problem, noAnswer, toProblem } from "./problem.ts";
import { type SseEvent, SseParser } from "./sse.ts";

export type Link = "connecting" | "live" | "broken" | "ended";

export interface Watching {
  /** The address to ask, each time anew: the position is in it. */
  readonly url: () => string;
  readonly onEvent: (event: SseEvent) => void;
  /** Before the first event of every connection. */
  readonly onOpen?: () => void;
  readonly onLink: (link: Link, problem: Problem | null) => void;
  /** May it rest while the page is hidden? */
  readonly rests: () => boolean;
}

const UNSEEN = 15_000; // a page that is hidden for so long is not being looked at
const SILENCE = 12_000; // a server that has nothing to say sends a comment every 5 s
const LONGEST = 2_500;
const FATAL = new Set([400, 401, 403, 404, 421]);

export class Stream {
  private readonly watching: Watching;
  private control: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private unseen: ReturnType<typeof setTimeout> | undefined;
  private tries = 0;
  private resting = false;
  private closed = false;

  constructor(watching: Watching) {
    this.watching = watching;
  }

  start(): this {
    addEventListener("online", this.wake);
    document.addEventListener("visibilitychange", this.look);
    void this.connect();
    return this;
  }

  close(): void {
    this.closed = true;
    removeEventListener("online", this.wake);
    document.removeEventListener("visibilitychange", this.look);
    clearTimeout(this.timer);
    clearTimeout(this.unseen);
    this.control?.abort();
  }

  private readonly look = (): void => {
    clearTimeout(this.unseen);
    if (document.visibilityState === "hidden") this.unseen = setTimeout(this.rest, UNSEEN);
    else this.wake();
  };

  private readonly rest = (): void => {
    if (this.closed || !this.watching.rests()) return;
    this.resting = true;
    clearTimeout(this.timer);
    this.control?.abort();
  };

  /** Somebody looks again, or the network is back: do not sit out the wait. */
  readonly wake = (): void => {
    if (this.closed || (!this.resting && this.timer === undefined)) return;
    this.resting = false;
    clearTimeout(this.timer);
    void this.connect();
  };

  private async connect(): Promise<void> {
    this.timer = undefined;
    const control = (this.control = new AbortController());
    try {
      await this.read(control);
      this.again(noAnswer());
    } catch (error) {
      if (this.closed || this.control !== control || this.resting) return;
      const problem = error instanceof Problem ? error : noAnswer();
      if (FATAL.has(problem.status)) this.watching.onLink("ended", problem);
      else this.again(problem);
    }
  }

  private async read(control: AbortController): Promise<void> {
    const headers = { Accept: "text/event-stream", ...signed() };
    const answer = await inTime(control, fetch(this.watching.url(), { headers, signal: control.signal, cache: "no-store" }));
    if (!answer.ok || !answer.body) throw await toProblem(answer);
    this.tries = 0;
    this.watching.onOpen?.();
    this.watching.onLink("live", null);
    const parser = new SseParser();
    const decoder = new TextDecoder();
    const reader = answer.body.getReader();
    for (;;) {
      const got = await inTime(control, reader.read());
      if (got.done || this.closed) return;
      for (const event of parser.feed(decoder.decode(got.value, { stream: true }))) this.watching.onEvent(event);
    }
  }

  private again(problem: Problem): void {
    if (this.closed || this.resting) return;
    this.watching.onLink("broken", problem);
    const wait = Math.min(LONGEST, 250 * 2 ** this.tries) * (0.75 + Math.random() / 2);
    this.tries += 1;
    this.timer = setTimeout(() => void this.connect(), this.tries === 1 ? 100 : wait);
  }
}

/** What arrives, unless that takes too long: then the connection is given up. */
function inTime<T>(control: AbortController, arriving: Promise<T>): Promise<T> {
  const silence = setTimeout(() => control.abort(), SILENCE);
  return arriving.finally(() => clearTimeout(silence));
}
