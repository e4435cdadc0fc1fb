// The page as a whole: signed in or not, the list, the session, and what lies over them.

import { opened } from "../state/living.ts";
import { gate } from "../state/store.ts";
import { Dialogs } from "./Dialogs.tsx";
import { ConnectionLine, Toasts } from "./Line.tsx";
import { Login } from "./Login.tsx";
import { detailsDrawer, listOpen, trayOpen } from "./rooms.ts";
import { Session } from "./Session.tsx";
import { Sessions } from "./Sessions.tsx";
import { Start } from "./Start.tsx";
import { Tray } from "./Tray.tsx";

export function App() {
  if (gate.value.at !== "in") return <Login />;
  const one = opened.value;
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        To the conversation
      </a>
      <ConnectionLine />
      <div class="page">
        <Sessions />
        {one ? <Session key={one.id} opened={one} /> : <Start />}
        <Shade />
        <Tray />
      </div>
      <Toasts />
      <Dialogs />
    </>
  );
}

/** The fragment is where the session stands, so the link only moves the focus. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Shade() {
  if (!listOpen.value && !trayOpen.value && !detailsDrawer.value) return null;
  const close = (): void => {
    listOpen.value = trayOpen.value = detailsDrawer.value = false;
  };
  return <div class={`shade${trayOpen.value ? " for-tray" : ""}`} onClick={close} aria-hidden="true" />;
}
