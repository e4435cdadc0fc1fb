// Where one stands without being signed in: why, and how to get in.

import { useState } from "preact/hooks";
import { Chooser } from "./Chooser.tsx";
import { signIn } from "./living.ts";
import { gate, title, words } from "./state.ts";

export function SignIn() {
  const w = words.value;
  const why = gate.value;
  if (why === "checking") {
    return (
      <main class="sign-in" aria-busy="true">
        <p class="faint">{w.signingIn}</p>
      </main>
    );
  }
  const said = why === "none" || why === "in" ? w.signInText : w[why];
  return (
    <main class="sign-in">
      <div class="card">
        <img src="/chat/favicon.svg" alt="" width="40" height="40" />
        <p class="name-of">
          <bdi>{title.value}</bdi>
        </p>
        <h1>{w.signIn}</h1>
        <p role={why === "wrong" || why === "away" ? "alert" : "status"} class={why === "wrong" || why === "away" ? "bad" : ""}>
          {said}
        </p>
        <Form />
        <Chooser />
      </div>
    </main>
  );
}

function Form() {
  const w = words.value;
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    await signIn(toToken(text));
    setBusy(false);
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <input type="text" name="username" autocomplete="username" hidden readOnly />
      <label class="field">
        <span>{w.token}</span>
        <input
          type="password"
          name="token"
          autocomplete="current-password"
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          autofocus
        />
      </label>
      <p class="faint">{w.signInHow}</p>
      <button class="button primary" type="submit" disabled={busy || !text.trim()}>
        {busy ? w.signingIn : w.signIn}
      </button>
    </form>
  );
}

/** People paste the whole address. */
export function toToken(text: string): string {
  return /[#&?]token=([^&\s]+)/.exec(text)?.[1] ?? text.trim();
}
