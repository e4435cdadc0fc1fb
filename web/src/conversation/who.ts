// Who said it, for whoever reads it: the name on a prompt or an answer is that of a token.

import { me } from "../state/store.ts";
import { oneLine } from "../text/neutral.ts";

const OWNER = "me"; // the name of the server's own token, and of whoever sits at the terminal

/** `You`, or the name; the owner's is no name to others. */
export function named(by: string): string {
  if (by !== "" && by === (me.value?.name ?? OWNER)) return "You";
  return by === OWNER ? "The owner" : oneLine(by || "Somebody", 60);
}

/** ... in the middle of a sentence. */
export function byWhom(by: string): string {
  const name = named(by);
  return name === "You" || name === "The owner" || name === "Somebody" ? name.toLowerCase() : name;
}

/** Who is signed in, in the middle of a sentence. */
export function signedInAs(): string {
  const name = me.value?.name ?? "";
  return name === OWNER ? "the owner" : oneLine(name, 64);
}
