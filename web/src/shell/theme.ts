// Light, dark, or as the system has it. Remembered by this browser.

import { effect, signal } from "@preact/signals";
import { keep, kept } from "./keeping.ts";

export type Theme = "auto" | "light" | "dark";
const THEMES: readonly Theme[] = ["auto", "light", "dark"];

export const theme = signal<Theme>(THEMES.find((one) => one === kept("theme")) ?? "auto");

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
}

export function followTheme(): void {
  effect(() => {
    if (theme.value === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
    keep("theme", theme.value === "auto" ? "" : theme.value);
  });
}
