// Putting the focus where it belongs.

/** Focuses it as soon as it is there and can be: what opens needs some frames for that. */
export function focus(id: string, tries = 10): void {
  const found = document.getElementById(id);
  found?.focus();
  if (document.activeElement !== found && tries > 0) requestAnimationFrame(() => focus(id, tries - 1));
}
