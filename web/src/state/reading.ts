// Values of the wire, read with care: what is not as it should be is nothing, never an exception.

export type Fields = Readonly<Record<string, unknown>>;

export function words(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : otherwise;
}

export function count(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function strings(value: unknown): readonly string[] {
  return list(value).filter((one): one is string => typeof one === "string");
}

/** The beginning of some text in one line. */
export function beginning(text: string, most = 80): string {
  const line = text.slice(0, most * 4).replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
