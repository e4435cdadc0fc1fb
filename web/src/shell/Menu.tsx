// A button that opens a short list of things to do. Arrow keys move, Escape closes.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Children } from "../state/model.ts";

export interface Entry {
  readonly label: string;
  readonly act?: () => void;
  readonly bad?: boolean;
  readonly off?: boolean;
}

export function Menu(props: { label: string; entries: readonly Entry[]; children: Children }) {
  const [open, setOpen] = useState(false);
  const room = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    room.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const away = (event: Event): void => {
      if (!room.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (!open) return;
    if (event.key === "Escape" || event.key === "Tab") {
      event.stopPropagation();
      setOpen(false);
      if (event.key === "Escape") button.current?.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(room.current, event.key === "ArrowDown" ? 1 : -1);
    }
  };
  const onFocusOut = ({ relatedTarget }: FocusEvent): void => {
    if (relatedTarget instanceof Node && !room.current?.contains(relatedTarget)) setOpen(false);
  };
  return (
    <div class="more" ref={room} onKeyDown={onKeyDown} onFocusOut={onFocusOut}>
      <button
        ref={button}
        type="button"
        class="button plain square"
        aria-label={props.label}
        title={props.label}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {props.children}
      </button>
      {open && (
        <div class="more-list" role="menu" aria-label={props.label}>
          {props.entries.map((entry) => (
            <MenuEntry key={entry.label} entry={entry} close={() => setOpen(false)} />
          ))}
        </div>
      )}
    </div>
  );
}

function MenuEntry({ entry, close }: { entry: Entry; close: () => void }) {
  const kind = `more-entry${entry.bad ? " bad" : ""}`;
  const act = (): void => {
    close();
    entry.act?.();
  };
  return (
    <button type="button" class={kind} role="menuitem" tabIndex={-1} disabled={entry.off} onClick={act}>
      {entry.label}
    </button>
  );
}

function move(room: HTMLElement | null, by: number): void {
  const all = [...(room?.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)") ?? [])];
  const at = all.indexOf(document.activeElement as HTMLElement);
  all[(at + by + all.length) % all.length]?.focus();
}
