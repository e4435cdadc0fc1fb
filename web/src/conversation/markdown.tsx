// Markdown on the page: finished blocks are rendered once, the last one while it grows.

import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { copy } from "../state/actions.ts";
import type { MarkdownProps } from "../state/model.ts";
import { EMPTY, openFence, split, type Split } from "../text/blocks.ts";
import { canHighlight } from "../text/highlight.ts";
import { forgetBlocks, renderBlock, renderGrowing, renderWhole } from "../text/markdown.ts";
import { Exact } from "./bytes.tsx";
import { memo } from "./memo.tsx";

const BUSY = 6; // milliseconds after which a growing block is rendered more seldom
const MANY = 40; // blocks from which those out of sight are not laid out

canHighlight.subscribe(() => forgetBlocks());

/** A text of the model. Copy buttons inside it work by themselves. */
export function Markdown({ text, streaming = false }: MarkdownProps): JSX.Element {
  const known = useRef<Split>(EMPTY);
  const now = split(text, known.current);
  known.current = now;
  const blocks = streaming ? now.done : now.tail.trim() ? [...now.done, now.tail] : now.done;
  return (
    <div class={blocks.length > MANY ? "md md-long" : "md"} onClick={copyCode}>
      {blocks.map((raw, at) => (
        <Block key={at} raw={raw} defs={now.defs} painted={canHighlight.value} />
      ))}
      {streaming && <Tail raw={now.tail} defs={now.defs} />}
    </div>
  );
}

/** A text that somebody agrees to: nothing of it may be invisible, and it can be seen as it was written. */
export function Whole({ text }: { text: string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const painted = canHighlight.value;
  const made = useMemo(() => renderWhole(text), [text, painted]);
  const [chosen, choose] = useState<boolean | null>(null);
  const source = chosen ?? !made.all;
  useLayoutEffect(() => box.current?.replaceChildren(made.nodes.cloneNode(true)), [made, source]);
  return (
    <>
      <div class="plan-head">
        <span class="faint">{made.all ? "" : "Formatted, parts of this would not show, so it is shown as it was written."}</span>
        <button type="button" class="button plain small" aria-pressed={source} onClick={() => choose(!source)}>
          Source
        </button>
      </div>
      {source ? <pre class="plan-source" tabIndex={0}><Exact text={text} /></pre> : <div class="md" dir="auto" ref={box} onClick={copyCode} />}
    </>
  );
}

interface BlockProps {
  readonly raw: string;
  readonly defs: string;
  readonly painted: boolean;
}

const Block = memo(function Block({ raw, defs, painted }: BlockProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => box.current?.replaceChildren(renderBlock(raw, defs)), [raw, defs, painted]);
  return <div class="md-block" dir="auto" ref={box} />;
});

/** The block that is still being written. */
function Tail({ raw, defs }: { raw: string; defs: string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const rest = useRef({ until: 0 });
  const fence = openFence(raw);
  const plain = fence !== null;
  useLayoutEffect(() => {
    const draw = () => {
      const began = performance.now();
      box.current?.replaceChildren(raw.trim() ? renderGrowing(raw, defs) : "");
      const took = performance.now() - began;
      rest.current.until = took > BUSY ? began + 5 * took : 0;
    };
    const wait = rest.current.until - performance.now();
    if (plain) return undefined;
    if (wait <= 0) return draw();
    const timer = setTimeout(draw, wait);
    return () => clearTimeout(timer);
  }, [raw, defs, plain]);
  if (fence) {
    return (
      <div class="md-block md-code" key="fence">
        <div class="md-head"><span>{fence.language || "text"}</span></div>
        <pre tabIndex={0}><code><Exact text={fence.code} /></code></pre>
      </div>
    );
  }
  return <div class="md-block md-tail" key="tail" dir="auto" ref={box} />;
}

function copyCode(event: MouseEvent): void {
  const button = (event.target as Element).closest?.("button.md-copy");
  const code = button?.closest(".md-code")?.querySelector("pre")?.textContent;
  if (!button || code === undefined || code === null) return;
  void copy(code.replace(/\n$/, "")).then((done) => flash(button, done ? "Copied" : "Not copied"));
}

function flash(button: Element, word: string): void {
  button.textContent = word;
  setTimeout(() => (button.textContent = "Copy"), 1500);
}
