// Server-sent events, taken apart as they come in. Pure: text in, events out.

export interface SseEvent {
  readonly name: string;
  readonly data: string; // "" where the block only moves the position
  readonly id: string | null; // null where the block says none
}

/** Feed it what arrives, in any pieces; it gives the blocks that are whole. */
export class SseParser {
  private rest = "";
  private name = "";
  private data: string[] = [];
  private id: string | null = null;
  private first = true;

  feed(text: string): SseEvent[] {
    const whole = this.rest + (this.first ? text.replace(/^\uFEFF/, "") : text);
    this.first &&= text === "";
    const found: SseEvent[] = [];
    let from = 0;
    for (;;) {
      const end = lineEnd(whole, from);
      if (end === null) break;
      const event = this.line(whole.slice(from, end.at));
      if (event) found.push(event);
      from = end.next;
    }
    this.rest = whole.slice(from);
    return found;
  }

  private line(line: string): SseEvent | null {
    if (line === "") return this.close();
    if (line.startsWith(":")) return null;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id" && !value.includes("\0")) this.id = value;
    return null;
  }

  private close(): SseEvent | null {
    const event = { name: this.name || "message", data: this.data.join("\n"), id: this.id };
    const said = this.data.length > 0 || this.id !== null;
    this.name = "";
    this.data = [];
    this.id = null;
    return said ? event : null;
  }
}

/** Where the line ends: at \n, \r or \r\n. A \r at the very end may yet become \r\n. */
function lineEnd(text: string, from: number): { at: number; next: number } | null {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 10) return { at, next: at + 1 };
    if (code !== 13) continue;
    if (at + 1 >= text.length) return null;
    return { at, next: text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 };
  }
  return null;
}
