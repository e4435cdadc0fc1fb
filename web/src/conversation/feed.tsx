// A long list of which only a window is in the page. Heights are measured as entries appear; what
// is seen stays where it is when something above it grows, shrinks or is loaded; at the end it
// stays at the end. Knows nothing of what an entry shows.

import { createRef, Component, type JSX } from "preact";
import { Heights } from "./heights.ts";

export interface FeedProps {
  readonly handle: { current: Feed | null }; // where to find it, for whoever moves in it
  readonly keys: readonly string[];
  readonly estimate: (key: string) => number;
  readonly entry: (key: string, index: number) => JSX.Element | null;
  readonly label: string;
  readonly busy: boolean;
  readonly onNearTop: () => void;
  readonly onStuck: (stuck: boolean) => void;
}

const BEYOND = 700; // pixels above and below what is seen
const NEAR_END = 48;
const NEAR_TOP = 1200;

interface Anchor {
  readonly key: string;
  readonly offset: number; // from the top of the view to the top of the entry
}

export class Feed extends Component<FeedProps> {
  private readonly scroller = createRef<HTMLDivElement>();
  private readonly heights = new Heights((key) => this.props.estimate(key));
  private readonly observer = new ResizeObserver((seen) => this.measured(seen));
  private readonly nodes = new Map<string, HTMLElement>();
  private anchor: Anchor | null = null;
  private stuck = true;
  private lastTop = 0;
  private held = ""; // the entry that has the focus: it stays in the page
  private frame = 0;

  override componentDidMount(): void {
    this.props.handle.current = this;
    this.observer.observe(this.scroller.current!);
    this.settle();
    this.forceUpdate();
  }

  override componentWillUnmount(): void {
    this.props.handle.current = null;
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  override componentDidUpdate(): void {
    this.catchUp();
    let changed = false;
    for (const [key, node] of this.nodes) {
      if (node.offsetHeight > 0) changed = this.heights.measure(key, node.offsetHeight) || changed;
    }
    this.settle();
    if (changed) this.forceUpdate();
  }

  /** Bring an entry into view, a third from the top, and give it the focus where that is wanted. */
  show(key: string, focus = false): void {
    const place = this.heights.place(key);
    const view = this.scroller.current;
    if (place < 0 || !view) return;
    this.unstick();
    this.anchor = { key, offset: Math.min(view.clientHeight / 3, 240) };
    if (focus) this.held = key;
    this.settle();
    this.forceUpdate(() => {
      this.settle();
      if (focus) this.nodes.get(key)?.focus({ preventScroll: true });
    });
  }

  /** Scroll as little as needed to show a whole entry; of one that is too tall, its beginning. */
  reveal(key: string, done: () => void): void {
    const view = this.scroller.current;
    const place = this.heights.place(key);
    if (place < 0 || !view) return;
    this.catchUp();
    const top = this.heights.top(place) - view.scrollTop;
    if (!this.nodes.has(key) || top < 0 || top + this.heights.height(place) > view.clientHeight) {
      this.unstick();
      this.anchor = { key, offset: 0 };
    }
    this.held = key;
    this.settle();
    this.forceUpdate(() => {
      this.settle();
      done();
    });
  }

  /** Is the end followed? */
  get follows(): boolean {
    return this.stuck;
  }

  /** To the end, and stay there. */
  toEnd(): void {
    this.stuck = true;
    this.anchor = null;
    this.props.onStuck(true);
    this.settle();
    this.forceUpdate();
  }

  /** The element of an entry, where it is in the page. */
  node(key: string): HTMLElement | null {
    return this.nodes.get(key) ?? null;
  }

  private unstick(): void {
    if (!this.stuck) return;
    this.stuck = false;
    this.props.onStuck(false);
  }

  /** Puts the view where the anchor says. */
  private settle(): void {
    const view = this.scroller.current;
    if (!view) return;
    const room = view.querySelector<HTMLElement>(".feed-room");
    if (room) room.style.height = `${this.heights.total}px`;
    let top = view.scrollTop;
    if (this.stuck) top = this.heights.total - view.clientHeight;
    else if (this.anchor) {
      const place = this.heights.place(this.anchor.key);
      if (place >= 0) top = this.heights.top(place) - this.anchor.offset;
    }
    top = Math.max(0, Math.min(top, view.scrollHeight - view.clientHeight));
    if (Math.abs(top - view.scrollTop) >= 1) view.scrollTop = top;
    this.lastTop = view.scrollTop;
  }

  private readonly scrolled = (): void => {
    this.catchUp();
    if (this.lastTop < NEAR_TOP) this.props.onNearTop();
    this.redraw();
  };

  /** Somebody may have scrolled since: before anything is moved or measured, that counts. */
  private catchUp(): void {
    const view = this.scroller.current;
    if (!view || Math.abs(view.scrollTop - this.lastTop) < 1) return;
    const top = view.scrollTop;
    const atEnd = view.scrollHeight - top - view.clientHeight < NEAR_END;
    if (atEnd && !this.stuck && top > this.lastTop) {
      this.stuck = true;
      this.props.onStuck(true);
    } else if (top < this.lastTop && !atEnd) this.unstick();
    this.lastTop = top;
    this.takeAnchor(top);
  }

  private takeAnchor(top: number): void {
    const place = this.heights.at(top);
    this.anchor = place < 0 ? null : { key: this.heights.key(place), offset: this.heights.top(place) - top };
  }

  private redraw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.forceUpdate();
    });
  }

  private measured(seen: ResizeObserverEntry[]): void {
    this.catchUp();
    let changed = false;
    for (const { target } of seen) {
      if (target === this.scroller.current) changed = true;
      const node = target as HTMLElement;
      const key = node.dataset["key"];
      if (key !== undefined && node.isConnected) changed = this.heights.measure(key, node.offsetHeight) || changed;
    }
    if (!changed) return;
    this.settle();
    this.forceUpdate();
  }

  /** Who opens something wants to read it: it stays where it is, and the end is not followed. */
  private readonly clicked = (event: Event): void => {
    const target = event.target as Element;
    if (!target.closest("[aria-expanded], [data-grows]")) return;
    const node = target.closest<HTMLElement>("article[data-key]");
    const view = this.scroller.current;
    if (!node || !view) return;
    const key = node.dataset["key"]!;
    this.catchUp();
    this.anchor = { key, offset: this.heights.top(this.heights.place(key)) - view.scrollTop };
    this.unstick();
  };

  private readonly focused = (event: FocusEvent): void => {
    this.held = (event.target as Element).closest<HTMLElement>("article[data-key]")?.dataset["key"] ?? "";
  };

  private readonly blurred = (event: FocusEvent): void => {
    if (!this.scroller.current?.contains(event.relatedTarget as Node | null)) this.held = "";
  };

  /** On an entry itself the arrows go from one to the next; inside of one keys are its own. */
  private readonly pressed = (event: KeyboardEvent): void => {
    const node = event.target as HTMLElement;
    const key = node.dataset?.["key"];
    if (key === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = STEPS[event.key];
    if (step !== undefined) {
      const place = Math.max(0, Math.min(this.heights.count - 1, this.heights.place(key) + step));
      event.preventDefault();
      this.reach(this.heights.key(place));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      node.querySelector<HTMLElement>("[aria-expanded]")?.click();
    }
  };

  private reach(key: string): void {
    const node = this.nodes.get(key);
    if (!node) return this.show(key, true);
    node.focus({ preventScroll: true });
    node.scrollIntoView({ block: "nearest" });
  }

  private readonly keep = (key: string) => {
    let current: HTMLElement | null = null;
    return (node: HTMLElement | null) => {
      if (node === current) return;
      if (current) {
        this.observer.unobserve(current);
        if (this.nodes.get(key) === current) this.nodes.delete(key);
      }
      current = node;
      if (node) {
        this.nodes.set(key, node);
        this.observer.observe(node);
      }
    };
  };
  private readonly refs = new Map<string, (node: HTMLElement | null) => void>();

  private ref(key: string): (node: HTMLElement | null) => void {
    let found = this.refs.get(key);
    if (!found) this.refs.set(key, (found = this.keep(key)));
    return found;
  }

  private shown(): number[] {
    const view = this.scroller.current;
    const height = view?.clientHeight ?? 800;
    const total = this.heights.total;
    const top = this.stuck ? Math.max(0, total - height) : (view?.scrollTop ?? 0);
    const [from, to] = this.heights.range(top - BEYOND, top + height + BEYOND);
    const places = Array.from({ length: to - from }, (_, at) => from + at);
    const held = this.held ? this.heights.place(this.held) : -1;
    if (held >= 0 && (held < from || held >= to)) places.push(held);
    return places;
  }

  override render(): JSX.Element {
    const { keys, entry, label, busy } = this.props;
    this.catchUp();
    this.heights.update(keys);
    return (
      <div
        class="feed" ref={this.scroller} onScroll={this.scrolled} onClickCapture={this.clicked}
        onFocusIn={this.focused} onFocusOut={this.blurred} onKeyDown={this.pressed}
      >
        <div class="feed-room" {...(keys.length > 0 ? { role: "feed", "aria-label": label, "aria-busy": busy } : {})}>
          {this.shown().map((place) => {
            const key = keys[place]!;
            return (
              <article
                key={key} ref={this.ref(key)} data-key={key} class="entry" tabIndex={place === keys.length - 1 ? 0 : -1}
                aria-posinset={place + 1} aria-setsize={keys.length} aria-labelledby={`who-${key}`}
                style={{ top: `${this.heights.top(place)}px` }} // not by a transform: what is sticky inside would ignore it
              >
                {entry(key, place)}
              </article>
            );
          })}
        </div>
      </div>
    );
  }
}

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, Home: -1e9, End: 1e9, PageDown: 1, PageUp: -1 };
