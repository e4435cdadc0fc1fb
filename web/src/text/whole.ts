// Does a rendered text still say everything that was written? Pure.
//
// Markdown can hide words: definitions of links, titles, cells that are too many. What somebody
// agrees to must not have such places, so that it is compared, word for word.

const WORD = /[\p{L}\p{N}]+/gu;
const NUMBERING = /^[ \t>]*(?:[-*+][ \t]+)*\d{1,9}[.)](?=[ \t]|$)/gm; // the page numbers lists itself

export function tellsAll(source: string, shown: string): boolean {
  const said = shown.match(WORD) ?? [];
  let at = 0;
  for (const word of source.replace(NUMBERING, "").match(WORD) ?? []) {
    while (at < said.length && said[at] !== word) at += 1;
    if (at === said.length) return false;
    at += 1;
  }
  return true;
}
