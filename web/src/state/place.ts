// Where the page is, as the address's fragment says it: `#/s/ID` or `#/s/ID@SEQ`. Pure.

export interface Place {
  readonly id: string;
  readonly seq: number;
}

export function toPlace(fragment: string): Place {
  const found = /^#\/s\/([^@/]+)(?:@(\d+))?$/.exec(fragment);
  try {
    return { id: decodeURIComponent(found?.[1] ?? ""), seq: Number(found?.[2] ?? 0) };
  } catch {
    return { id: "", seq: 0 }; // an address that somebody mangled
  }
}

export function toFragment(id: string, seq = 0): string {
  return id ? `#/s/${encodeURIComponent(id)}${seq ? `@${seq}` : ""}` : "#/";
}
