// Where one stands without being signed in: what happened, and how to get in.

import { useState } from "preact/hooks";
import { enter, signIn } from "../state/living.ts";
import { gate } from "../state/store.ts";

const SAID = {
  none: ["Sign in", "This page shows your sessions to you alone."],
  used: ["That code does not work any more", "A code is good once and for a quarter of an hour, so that an address that was seen by others is worth nothing."],
  expired: ["You were signed out", "The sign-in has expired, or the token was withdrawn. Your sessions go on, and drafts are kept in this browser."],
  left: ["You are signed out", "Your sessions go on without you."],
  silent: ["The server does not answer", "It is tried again every moment; this page comes back by itself."],
} as const;

export function Login() {
  const state = gate.value;
  if (state.at === "in") return null;
  if (state.at === "checking") {
    return (
      <main class="login" aria-busy="true">
        <p class="faint">Signing in…</p>
      </main>
    );
  }
  const [title, text] = SAID[state.why];
  return (
    <main class="login">
      <div class="login-card">
        <img class="login-mark" src="/favicon.svg" alt="" width="40" height="40" />
        <h1>{title}</h1>
        <p role="status">{text}</p>
        {state.why === "silent" ? <p class="faint">Is it running? Start it with <code>bridle serve</code>.</p> : <CodeForm />}
      </div>
    </main>
  );
}

function CodeForm() {
  const [code, setCode] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    if (await signIn(toCode(code))) await enter();
    setBusy(false);
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <p>
        Run <code>bridle serve</code> and open the address that it prints, or put the code or a token here.
      </p>
      <input type="text" name="username" autocomplete="username" hidden readOnly />
      <label class="field">
        <span>Code or token</span>
        <input
          type="password"
          name="code"
          autocomplete="current-password"
          spellcheck={false}
          value={code}
          onInput={(event) => setCode(event.currentTarget.value)}
          autofocus
        />
      </label>
      <button class="button primary" type="submit" disabled={busy || !code.trim()}>
        {busy ? "Signing in…" : "Sign in"}
      </button>
    </form>
  );
}

/** People paste the whole address. */
export function toCode(text: string): string {
  return /[#&?]code=([^&\s]+)/.exec(text)?.[1] ?? text.trim();
}
