// What a person has opened and closed stays so while it is scrolled away: entries leave the page.

import { createContext, type ComponentChildren, type JSX } from "preact";
import { useContext, useState } from "preact/hooks";

export const Folds = createContext(new Map<string, boolean>());

/** Is this open, and how to change that. `open` is what holds until somebody says otherwise. */
export function useFold(key: string, open: boolean): [boolean, () => void] {
  const folds = useContext(Folds);
  const [, redraw] = useState(0);
  const now = folds.get(key) ?? open;
  const toggle = () => {
    folds.set(key, !now);
    redraw((count) => count + 1);
  };
  return [now, toggle];
}

interface FoldProps {
  readonly id: string;
  readonly open?: boolean;
  readonly label: ComponentChildren;
  readonly class?: string;
  readonly children: () => ComponentChildren; // made only where it is open
}

/** Something behind a line that opens and closes it. */
export function Fold({ id, open = false, label, class: name = "", children }: FoldProps): JSX.Element {
  const [isOpen, toggle] = useFold(id, open);
  return (
    <div class={`fold ${name}`}>
      <button type="button" class="fold-line" aria-expanded={isOpen} onClick={toggle}>
        <span class="fold-mark" aria-hidden="true" />
        {label}
      </button>
      {isOpen && <div class="fold-body">{children()}</div>}
    </div>
  );
}
