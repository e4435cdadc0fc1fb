// What a key press means: text, or a command. Pure.
//
// A letter alone is always text. A command takes Alt, on a Mac Control and Option, because Option
// alone writes letters there.

const MAC = /^(Mac|iP)/.test(globalThis.navigator?.platform ?? "");

/** The modifier of commands, as the help writes it. */
export const COMMAND = MAC ? "⌃⌥" : "Alt+";
/** The modifier of shortcuts that every program has, such as the search. */
export const CONTROL = MAC ? "⌘" : "Ctrl+";

export type Press = Pick<KeyboardEvent, "key" | "code" | "ctrlKey" | "altKey" | "metaKey" | "getModifierState">;

/** The command that a key press asks for: a letter in lower case, or `ArrowUp`; "" if it is none. */
export function commandOf(event: Press, mac = MAC): string {
  if (!event.altKey || event.metaKey || event.ctrlKey !== mac) return "";
  if (/^[a-z]$/i.test(event.key)) return event.key.toLowerCase();
  const letter = /^Key([A-Z])$/.exec(event.code); // with Option, or another alphabet
  return letter ? letter[1]!.toLowerCase() : event.key;
}

/** Does the key press write something, or begin to? */
export function isText(event: Press, mac = MAC): boolean {
  if (event.metaKey) return false;
  const writes = event.getModifierState("AltGraph") || (mac && !event.ctrlKey); // Alt then belongs to the letter
  if (!writes && (event.ctrlKey || event.altKey)) return false;
  return event.key === "Dead" || event.key === "Process" || [...event.key].length === 1;
}
