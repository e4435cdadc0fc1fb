// Putting the focus where it belongs.

/** Focuses it as soon as it is there and can be: what opens needs some frames for that. */
export function focus(id: string, isTime: () => boolean = () => true, tries = 20): void {
  const found = isTime() ? document.getElementById(id) : null;
  found?.focus();
  if ((!found || document.activeElement !== found) && tries > 0) requestAnimationFrame(() => focus(id, isTime, tries - 1));
}
