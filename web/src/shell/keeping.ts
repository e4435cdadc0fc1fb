// What this browser remembers of the page: drafts, the theme, what is folded. It may refuse to.

const NAME = "bridle.";

export function kept(key: string): string {
  try {
    return localStorage.getItem(NAME + key) ?? "";
  } catch {
    return "";
  }
}

/** Nothing is kept as nothing. */
export function keep(key: string, value: string): void {
  try {
    if (value) localStorage.setItem(NAME + key, value);
    else localStorage.removeItem(NAME + key);
  } catch {
    // full, or not allowed: the page works all the same
  }
}

/** The name of what is being written in that session; "" is one that has not begun. */
export function draftOf(sessionId: string): string {
  return `draft.${sessionId || "new"}`;
}
