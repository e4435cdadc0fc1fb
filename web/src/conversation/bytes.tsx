// Text from elsewhere, exactly: what would be invisible is written out and looks different.

import type { JSX } from "preact";
import { marked } from "../text/neutral.ts";

/** The text with its hidden characters shown. */
export function Exact({ text }: { text: string }): JSX.Element {
  const pieces = marked(text);
  return (
    <>
      {pieces.map((piece, at) =>
        piece.escaped ? (
          <span key={at} class="escaped" title="a character that does not show by itself">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </>
  );
}
