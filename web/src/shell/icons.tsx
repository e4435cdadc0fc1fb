// The few drawings of the page. Each is decoration: what it means is said in words beside it.

import type { JSX } from "preact";

function icon(path: string): () => JSX.Element {
  return () => (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={path} />
    </svg>
  );
}

export const Plus = icon("M8 3v10M3 8h10");
export const Search = icon("M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3 3");
export const List = icon("M2 4h12M2 8h12M2 12h12");
export const Close = icon("M4 4l8 8M12 4l-8 8");
export const More = icon("M3 8h.01M8 8h.01M13 8h.01");
export const Bell = icon("M8 2a4 4 0 0 1 4 4v3l1.5 2.5h-11L4 9V6a4 4 0 0 1 4-4zM6.5 14h3");
export const Send = icon("M8 13V3M4 7l4-4 4 4");
export const Stop = icon("M4.5 4.5h7v7h-7z");
export const Sun = icon("M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1");
export const Moon = icon("M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z");
export const Half = icon("M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 2v12M8 5l4.5-1M8 8h6M8 11l4.5 1");
export const Clock = icon("M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3l2 2");
export const Panel = icon("M2 3h12v10H2zM10 3v10");
export const Down = icon("M4 6l4 4 4-4");
export const Right = icon("M6 4l4 4-4 4");
export const Check = icon("M3 8.5l3.5 3.5L13 4.5");
export const Pen = icon("M3 13l.5-3L11 2.5 13.5 5 6 12.5z");
