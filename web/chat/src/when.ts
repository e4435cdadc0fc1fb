// When a task is due, as a person says it. Pure: the moment that it is now is handed in.

import type { Words } from "./words.ts";

export interface Due {
  readonly text: string;
  readonly late: boolean;
}

const DAY = 86_400_000;

/** A day ("2026-11-20") or a moment with its zone; the words are those of the reader's language. */
export function dueText(due: string, words: Words, language: string, now: Date): Due {
  const whole = /^\d{4}-\d{2}-\d{2}$/.test(due);
  const moment = whole ? dayOf(due) : new Date(due);
  if (Number.isNaN(moment.getTime())) return { text: due, late: false };
  const distance = Math.round((midnight(moment).getTime() - midnight(now).getTime()) / DAY);
  const near = ({ "-1": words.yesterday, "0": words.today, "1": words.tomorrow } as Record<string, string>)[distance];
  const sameYear = moment.getFullYear() === now.getFullYear();
  const how: Intl.DateTimeFormatOptions = { weekday: "short", day: "numeric", month: "short" };
  const digits = `${language}-u-nu-latn`; // as the assistant writes them, and the same clock
  const day = near ?? moment.toLocaleDateString(digits, sameYear ? how : { ...how, year: "numeric" });
  const time = whole ? "" : ` ${moment.toLocaleTimeString(digits, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" })}`;
  return { text: day + time, late: whole ? distance < 0 : moment.getTime() < now.getTime() };
}

function dayOf(text: string): Date {
  const [year, month, day] = text.split("-").map(Number);
  return new Date(year!, month! - 1, day!);
}

function midnight(moment: Date): Date {
  return new Date(moment.getFullYear(), moment.getMonth(), moment.getDate());
}
