// How tall everything is, and where it therefore stands: the arithmetic of a list of which only a
// window is in the page. Pure; knows keys and pixels, nothing of the DOM.
//
// What was never measured has an estimate. A key keeps its height when others come before it.

export class Heights {
  private keys: readonly string[] = [];
  private places = new Map<string, number>();
  private measured = new Map<string, number>();
  private tops = new Float64Array(1); // tops[i]: where entry i begins; tops[n]: the whole height
  private sound = 0; // tops are right up to this index
  private readonly estimate: (key: string) => number;

  constructor(estimate: (key: string) => number) {
    this.estimate = estimate;
  }

  /** The list as it is now. Growing at the end is cheap; anything else is counted anew. */
  update(keys: readonly string[]): void {
    if (keys === this.keys) return;
    const same = common(this.keys, keys);
    if (same < this.keys.length) {
      for (const key of this.keys.slice(same)) this.places.delete(key);
    }
    for (let at = same; at < keys.length; at++) this.places.set(keys[at]!, at);
    if (this.tops.length < keys.length + 1) {
      const grown = new Float64Array(Math.max(64, 2 * keys.length + 1));
      grown.set(this.tops);
      this.tops = grown;
    }
    this.keys = keys;
    this.sound = Math.min(this.sound, same);
  }

  /** What an entry measures; was it another height than before? */
  measure(key: string, height: number): boolean {
    if (Math.abs((this.measured.get(key) ?? -1) - height) < 0.5) return false;
    this.measured.set(key, height);
    const at = this.places.get(key);
    if (at !== undefined) this.sound = Math.min(this.sound, at);
    return true;
  }

  get count(): number {
    return this.keys.length;
  }

  /** The whole height. */
  get total(): number {
    return this.top(this.keys.length);
  }

  /** Where an entry begins. */
  top(index: number): number {
    for (let at = this.sound; at < index; at++) {
      this.tops[at + 1] = this.tops[at]! + this.height(at);
    }
    this.sound = Math.max(this.sound, index);
    return this.tops[index]!;
  }

  /** How tall an entry is, as far as that is known. */
  height(index: number): number {
    const key = this.keys[index]!;
    return this.measured.get(key) ?? this.estimate(key);
  }

  place(key: string): number {
    return this.places.get(key) ?? -1;
  }

  key(index: number): string {
    return this.keys[index] ?? "";
  }

  /** The entry that covers this offset; the last one beyond the end, -1 where there is none. */
  at(offset: number): number {
    const count = this.keys.length;
    if (count === 0) return -1;
    this.top(count);
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The entries between two offsets, as [from, to). */
  range(from: number, to: number): [number, number] {
    if (this.keys.length === 0) return [0, 0];
    return [this.at(from), this.at(to) + 1];
  }
}

function common(old: readonly string[], now: readonly string[]): number {
  const shorter = Math.min(old.length, now.length);
  let at = 0;
  while (at < shorter && old[at] === now[at]) at++;
  return at;
}
