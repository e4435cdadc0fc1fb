// Text from elsewhere, made safe to look at. Pure; the page's twin of workspace/text.py.
//
// `neutral` writes out what a reader would not see or a browser would obey: control characters,
// bidi controls, zero-width and tag characters. Joiners and selectors that belong to honest text
// (emoji, Arabic, Indic) stay. `plainOutput` is for what programs print: colours go, and nothing
// else may hide.

const EMOJI =
  "\\u00a9\\u00ae\\u203c\\u2049\\u2122\\u2139\\u2190-\\u21ff\\u2300-\\u27bf\\u2900-\\u297f\\u2b00-\\u2bff" +
  "\\u3030\\u303d\\u3297\\u3299\\u{1f000}-\\u{1faff}";
const JOINING =
  "\\u0620-\\u06ff\\u0750-\\u077f\\u08a0-\\u08ff\\u0900-\\u109f\\u1780-\\u17b3\\u17b6-\\u17ff" +
  "\\u1820-\\u18aa\\u1b00-\\u1bff\\ua800-\\uabff\\ufb50-\\ufdcf\\ufdf0-\\ufdff";
const IDEOGRAPHS = "\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
const HIDDEN =
  "\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
  "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufdd0-\\ufdef\\ufe00-\\ufe0f\\ufeff\\uffa0" +
  "\\ufff0-\\ufffb\\ufffe\\uffff\\ud800-\\udfff" +
  "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}";

const HONEST = [
  `(?<=[${EMOJI}]\\ufe0f?)\\u200d(?=[${EMOJI}])`,
  `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}])`,
  `(?<=[${EMOJI}])[\\ufe0e\\ufe0f]`,
  "(?<=[0-9#*])\\ufe0f(?=\\u20e3)",
  `(?<=[${IDEOGRAPHS}])[\\ufe00-\\ufe02\\u{e0100}-\\u{e01ef}]`,
  "(?<=[\\u1820-\\u18aa])[\\u180b-\\u180f]",
].join("|");

const SUSPECT = new RegExp(`(${HONEST})|[\\x00-\\x08\\x0b-\\x1f${HIDDEN}]`, "gu");
const SUSPECT_IN_LINE = new RegExp(`(${HONEST})|[\\x00-\\x1f${HIDDEN}]`, "gu");
const SHORT: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function written(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (SHORT[char] !== undefined) return SHORT[char];
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

/** The text with everything invisible or obeyed written out; line feeds and tabs stay. */
export function neutral(text: string): string {
  return text.replace(SUSPECT, (found, honest?: string) => (honest ? found : written(found)));
}

/** The text as one line of at most `limit` characters. */
export function oneLine(text: string, limit = 120): string {
  const rough = text.slice(0, 8 * limit + 1024);
  const joined = rough.split(/\s+/u).filter(Boolean).join(" ");
  const line = joined.replace(SUSPECT_IN_LINE, (found, honest?: string) =>
    honest ? found : written(found),
  );
  const whole = line.length <= limit && rough.length === text.length;
  return whole ? line : `${line.slice(0, limit - 1).trimEnd()}…`;
}

const PAINT = /\x1b\[[0-9;:]*m/g; // colours and weights only: every other sequence is shown
const RETURNS = /\r+\n?/g;

/** What a program printed: its colours are dropped, a carriage return begins a line of its own. */
export function plainOutput(text: string): string {
  return neutral(text.replace(PAINT, "").replace(RETURNS, "\n"));
}

/** Pieces of `neutral(text)`; those that were written out are marked, so that a face can colour them. */
export function marked(text: string): { text: string; escaped: boolean }[] {
  const pieces: { text: string; escaped: boolean }[] = [];
  let from = 0;
  for (const match of text.matchAll(SUSPECT)) {
    if (match[1] !== undefined) continue;
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), escaped: false });
    pieces.push({ text: written(match[0]), escaped: true });
    from = match.index + match[0].length;
  }
  if (from < text.length || pieces.length === 0) pieces.push({ text: text.slice(from), escaped: false });
  return pieces;
}
