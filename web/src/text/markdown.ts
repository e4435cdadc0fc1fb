// Markdown to safe nodes. What the model wrote as HTML is shown as text, pictures become links.
//
// Nodes are kept for a while by what they were made of: what is scrolled away and back is not
// parsed again.

import { Marked, type MarkedExtension, type Tokens } from "marked";
import { highlighted } from "./highlight.ts";
import { marked } from "./neutral.ts";
import { sanitise } from "./sanitise.ts";
import { tellsAll } from "./whole.ts";

const HARMLESS = /^<\/?(?:br|kbd|sub|sup)\s*\/?>$/i;
const MOST_KEPT = 600;
const LARGEST_KEPT = 20_000; // characters

const escaped: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function asText(html: string): string {
  return html.replace(/[&<>"']/g, (char) => escaped[char]!);
}

const shared: MarkedExtension = {
  gfm: true,
  renderer: {
    heading({ tokens, depth }: Tokens.Heading) {
      const level = Math.min(6, depth + 2); // the page has the first two itself
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
  },
};

const parser = new Marked(shared, {
  renderer: {
    html({ text }: Tokens.HTML | Tokens.Tag) {
      return HARMLESS.test(text.trim()) ? text : asText(text);
    },
    image({ href, text }: Tokens.Image) {
      const label = `picture: ${text || "without a name"}`;
      return `<a href="${asText(href)}">${asText(label)}</a>`;
    },
    checkbox({ checked }: Tokens.Checkbox) {
      return checked ? "☑ " : "☐ ";
    },
  },
});

/** For what somebody agrees to: every part of it is shown, also what Markdown leaves out. */
const open = new Marked(shared, {
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => asText(text),
    def: ({ raw }: Tokens.Def) => `<p>${asText(raw.trim())}</p>\n`,
    image: ({ raw }: Tokens.Image) => asText(raw),
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? "[x] " : "[ ] "),
    link({ href, title, tokens, raw }: Tokens.Link) {
      const link = `<a href="${asText(href)}">${this.parser.parseInline(tokens)}</a>`;
      const more = title ? `${href} "${title}"` : href;
      return raw.startsWith("[") ? `${link} (${asText(more)})` : link;
    },
  },
});

/** The nodes of a whole text, and whether they say everything that it says. */
export function renderWhole(text: string): { nodes: DocumentFragment; all: boolean } {
  const nodes = dressed(sanitise(open.parse(text, { async: false })));
  const all = tellsAll(text, nodes.textContent ?? "");
  showHidden(nodes);
  return { nodes, all };
}

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
  const fragment = dressed(sanitise(parser.parse(defs ? `${raw}\n\n${defs}` : raw, { async: false })));
  showHidden(fragment);
  return fragment;
}

function dressed(fragment: DocumentFragment): DocumentFragment {
  for (const pre of fragment.querySelectorAll("pre")) dressCode(pre);
  for (const table of fragment.querySelectorAll("table")) wrapped(table, "md-table");
  return fragment;
}

/** What does not show by itself is written out, wherever it came from: entities make such characters, too. */
function showHidden(fragment: DocumentFragment): void {
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  const found: Text[] = [];
  while (walker.nextNode()) found.push(walker.currentNode as Text);
  for (const node of found) {
    const pieces = marked(node.data);
    if (!pieces.some((piece) => piece.escaped)) continue;
    node.replaceWith(...pieces.map((piece) => (piece.escaped ? mark(piece.text) : piece.text)));
  }
}

function mark(text: string): HTMLElement {
  const made = document.createElement("span");
  made.className = "escaped";
  made.title = "a character that does not show by itself";
  made.textContent = text;
  return made;
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
