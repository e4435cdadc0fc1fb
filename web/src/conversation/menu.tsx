// What can be done with a message: copy it, go on from it in another session, go back to it.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Deed {
  readonly label: string;
  readonly act: () => void;
}

/** A button that opens a short list of deeds. Arrows walk through it, Escape closes it. */
export function Menu({ label, deeds }: { label: string; deeds: readonly Deed[] }): JSX.Element {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return undefined;
    box.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const away = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const leave = ({ relatedTarget }: FocusEvent) => {
    if (relatedTarget instanceof Node && !box.current?.contains(relatedTarget)) setOpen(false);
  };
  return (
    <div class="menu" ref={box} onKeyDown={(event) => walk(event, box.current, close)} onFocusOut={leave}>
      <button type="button" class="menu-button" ref={button} aria-haspopup="menu" aria-expanded={open} aria-label={label} onClick={() => setOpen(!open)}>
        <span aria-hidden="true">⋯</span>
      </button>
      {open && (
        <div class="menu-list" role="menu" aria-label={label}>
          {deeds.map((deed) => (
            <button type="button" role="menuitem" tabIndex={-1} key={deed.label} onClick={() => { close(); deed.act(); }}>
              {deed.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

function walk(event: KeyboardEvent, box: HTMLElement | null, close: () => void): void {
  const items = [...(box?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  const step = STEPS[event.key];
  if (items.length === 0) return;
  if (event.key === "Escape" || event.key === "Tab") {
    event.preventDefault();
    event.stopPropagation();
    close();
  } else if (step !== undefined) {
    event.preventDefault();
    event.stopPropagation();
    const at = items.indexOf(document.activeElement as HTMLElement);
    items[(at + step + items.length) % items.length]?.focus();
  }
}
