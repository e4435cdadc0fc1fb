// What stands before the cursor: is it the beginning of a file's name? Pure.

export interface Mention {
  readonly from: number; // where the @ stands
  readonly query: string;
}

/** `@` at the beginning of a word, and no space since. */
export function mentionAt(text: string, cursor: number): Mention | null {
  const found = /(?:^|[\s([{"'`])@([^\s@]{0,200})$/.exec(text.slice(0, cursor));
  if (!found) return null;
  const query = found[1] ?? "";
  return { from: cursor - query.length - 1, query };
}

/** The text with the path in the mention's place, and where the cursor goes. */
export function withPath(text: string, cursor: number, mention: Mention, path: string): { text: string; cursor: number } {
  const name = /\s/.test(path) ? `"${path}"` : path;
  const put = `@${name} `;
  const rest = text.slice(cursor).replace(/^ /, "");
  return { text: text.slice(0, mention.from) + put + rest, cursor: mention.from + put.length };
}
