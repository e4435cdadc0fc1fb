// Markdown to safe nodes. What the model wrote as HTML is shown as text, pictures become links.
//
// Nodes are kept for a while by what they were made of: what is scrolled away and back is not
// parsed again.

import { Marked, type Tokens } from "marked";
import { highlighted } from "./highlight.ts";
import { sanitise } from "./sanitise.ts";

const HARMLESS = /^<\/?(?:br|kbd|sub|sup)\s*\/?>$/i;
const MOST_KEPT = 600;
const LARGEST_KEPT = 20_000; // characters

const escaped: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function asText(html: string): string {
  return html.replace(/[&<>"']/g, (char) => escaped[char]!);
}

const parser = new Marked({
  gfm: true,
  renderer: {
    html({ text }: Tokens.HTML | Tokens.Tag) {
      return HARMLESS.test(text.trim()) ? text : asText(text);
    },
    image({ href, text }: Tokens.Image) {
      const label = `picture: ${text || "without a name"}`;
      return `<a href="${asText(href)}">${asText(label)}</a>`;
    },
    heading({ tokens, depth }: Tokens.Heading) {
      const level = Math.min(6, depth + 2); // the page has the first two itself
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    checkbox({ checked }: Tokens.Checkbox) {
      return checked ? "☑ " : "☐ ";
    },
  },
});

const kept = new Map<string, DocumentFragment>();

/** The nodes of a block; `defs` defines the links that it refers to. */
export function renderBlock(raw: string, defs = ""): DocumentFragment {
  const key = `${defs}\u0000${raw}`;
  const found = kept.get(key);
  if (found) {
    kept.delete(key); // the newest is last
    kept.set(key, found);
    return found.cloneNode(true) as DocumentFragment;
  }
  const made = fragmentOf(raw, defs);
  if (key.length <= LARGEST_KEPT) {
    kept.set(key, made.cloneNode(true) as DocumentFragment);
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value!);
  }
  return made;
}

/** The nodes of a block that still grows: they are not kept. */
export function renderGrowing(raw: string, defs: string): DocumentFragment {
  return fragmentOf(raw, defs);
}

/** Forget what was rendered: something that it depends on (the highlighter) has come. */
export function forgetBlocks(): void {
  kept.clear();
}

function fragmentOf(raw: string, defs: string): DocumentFragment {
  const fragment = sanitise(parser.parse(defs ? `${raw}\n\n${defs}` : raw, { async: false }));
  for (const pre of fragment.querySelectorAll("pre")) dressCode(pre);
  for (const table of fragment.querySelectorAll("table")) wrapped(table, "md-table");
  return fragment;
}

function wrapped(node: HTMLElement, name: string): HTMLElement {
  const box = document.createElement("div");
  box.className = name;
  box.tabIndex = 0; // what scrolls can be reached by key
  node.replaceWith(box);
  box.append(node);
  return box;
}

/** A code block gets its language's name, a button to copy it, and colours where they are known. */
function dressCode(pre: HTMLPreElement): void {
  const code = pre.querySelector("code");
  const language = /language-([\w+#.-]+)/.exec(code?.className ?? "")?.[1] ?? "";
  const text = code?.textContent ?? "";
  const painted = language && code ? highlighted(text, language) : null;
  if (painted) code!.replaceChildren(painted);
  const box = document.createElement("div");
  box.className = "md-code";
  pre.replaceWith(box);
  pre.tabIndex = 0;
  box.append(codeHead(language), pre);
}

/** The line above a code block. */
function codeHead(language: string): HTMLElement {
  const head = document.createElement("div");
  head.className = "md-head";
  const name = document.createElement("span");
  name.textContent = language || "text";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "md-copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy the ${language || "text"} block`);
  head.append(name, button);
  return head;
}
