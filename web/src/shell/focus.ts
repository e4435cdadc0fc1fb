// Putting the focus where it belongs.

/** Focuses it as soon as it is there and can be: what opens needs some frames for that. */
export function focus(id: string, isTime: () => boolean = () => true, tries = 20): void {
  const found = isTime() ? document.getElementById(id) : null;
  found?.focus();
  if ((!found || document.activeElement !== found) && tries > 0) requestAnimationFrame(() => focus(id, isTime, tries - 1));
}

/** Focus the composer, except on a touch screen, where that would open the keyboard. */
export function focusComposer(): void {
  if (matchMedia("(hover: hover)").matches) document.getElementById("composer")?.focus();
}

/** Focus the composer if the focus is nowhere, or on the link that led here. */
export function offerComposer(): void {
  const active = document.activeElement;
  if (!active || active.matches("body, #main, a[href^='#/']")) focusComposer();
}
