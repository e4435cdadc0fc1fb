// The half of the sign-in that the page keeps. The other half is a cookie, which a browser sends to
// every port of the host; what is kept here belongs to this origin alone.

const NAME = "bridle.key";
let mine = ""; // where the browser keeps nothing

export function key(): string {
  try {
    return localStorage.getItem(NAME) ?? mine;
  } catch {
    return mine;
  }
}

export function keepKey(value: string): void {
  mine = value;
  try {
    if (value) localStorage.setItem(NAME, value);
    else localStorage.removeItem(NAME);
  } catch {
    // not allowed: this tab has it
  }
}

/** What every request says of who asks. */
export function signed(): Record<string, string> {
  const found = key();
  return found ? { "X-Bridle-Key": found } : {};
}
