// The one door through which anything that was HTML comes into the page.
//
// A strict list of elements and attributes; no script, style, frame, form or picture is on it, no
// address but http, https and mailto. Links say where they lead. What comes out is a fragment, not
// text: it is not parsed a second time, by other rules.

import DOMPurify, { type Config } from "dompurify";

const TAGS =
  "p br hr h3 h4 h5 h6 strong em del b i s sub sup kbd code pre blockquote ul ol li " +
  "table thead tbody tr th td a span";
const CLASSES = /^(?:language-[\w+#.-]{1,40}|hljs(?:-[a-z_-]+)?|[a-z]+_|md-[a-z]+)$/;
const ADDRESS = /^(?:https?:\/\/|mailto:)/i;

const RULES = {
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["href", "title", "class", "start", "align"],
  ALLOWED_URI_REGEXP: ADDRESS, // holds for every attribute that is not said to be safe
  ADD_URI_SAFE_ATTR: ["start", "align"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOW_UNKNOWN_PROTOCOLS: false,
  KEEP_CONTENT: true,
  RETURN_DOM_FRAGMENT: true,
} as const satisfies Config;

let purifier: typeof DOMPurify | null = null;

function door(): typeof DOMPurify {
  if (purifier) return purifier;
  purifier = DOMPurify(window);
  purifier.addHook("uponSanitizeAttribute", (_node, data) => {
    if (data.attrName !== "class") return;
    const kept = data.attrValue.split(/\s+/).filter((name) => CLASSES.test(name));
    data.attrValue = kept.join(" ");
    data.keepAttr = kept.length > 0;
  });
  purifier.addHook("afterSanitizeAttributes", (node) => {
    if (node.nodeName === "A") tellLink(node as HTMLAnchorElement);
  });
  return purifier;
}

/** Safe nodes, whatever the HTML says. */
export function sanitise(html: string): DocumentFragment {
  return door().sanitize(html, RULES) as unknown as DocumentFragment;
}

function tellLink(link: HTMLAnchorElement): void {
  const address = parsed(link.getAttribute("href") ?? "");
  if (address === null) {
    link.removeAttribute("href"); // a path of the model's, or something that nobody should follow
    return;
  }
  link.setAttribute("rel", "noopener noreferrer");
  link.setAttribute("target", "_blank");
  const where = address.protocol === "mailto:" ? address.pathname : address.host;
  link.setAttribute("title", address.href);
  if (!saysWhere(link.textContent ?? "", where)) {
    const told = link.ownerDocument.createElement("span");
    told.className = "md-host";
    told.textContent = ` (${where})`;
    link.append(told);
  }
}

function parsed(href: string): URL | null {
  if (!ADDRESS.test(href)) return null;
  try {
    return new URL(href);
  } catch {
    return null;
  }
}

/** Does the text itself begin with the host that it leads to? `evil.com` in the middle is no proof. */
function saysWhere(text: string, where: string): boolean {
  const said = text.trim().replace(/^(?:https?:\/\/|mailto:)/i, "");
  return said === where || said.startsWith(`${where}/`);
}
