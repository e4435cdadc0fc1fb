// Where one stands without being signed in: what happened, and how to get in.

import { useState } from "preact/hooks";
import type { SigningIn } from "../api/client.ts";
import { enter, signIn } from "../state/living.ts";
import { gate } from "../state/store.ts";

const SAID = {
  none: ["Sign in", "Sign in to see the sessions of this server."],
  used: ["This code no longer works", "A code works once, within 15 minutes of being printed, so that nobody else can use an address that they saw."],
  wrong: ["This token is not valid", "It may be misspelt or revoked. Whoever runs the server can give you a new one."],
  expired: ["You were signed out", "The sign-in has expired, or the token was revoked. Your sessions continue, and drafts are kept in this browser."],
  left: ["You are signed out", "Your sessions continue without you."],
  silent: ["Can't reach the server", "Retrying… This page reconnects by itself."],
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
        {state.why === "silent" ? <p class="faint">Is it running? Start it with <code>bridle serve</code>.</p> : <Forms />}
      </div>
    </main>
  );
}

function Forms() {
  return (
    <>
      <p>
        Run <code>bridle serve</code> and open the address that it prints, or paste it here.
      </p>
      <Form name="code" label="Address or code" first toHow={(text) => ({ code: toCode(text) })} />
      <p>Or sign in with a token that somebody gave you.</p>
      <Form name="token" label="Token" toHow={(text) => ({ token: text.trim() })} />
    </>
  );
}

interface FormProps {
  readonly name: string;
  readonly label: string;
  readonly first?: boolean;
  readonly toHow: (text: string) => SigningIn;
}

/** A code and a token are never taken for each other: an address can bring the one, and not the other. */
function Form({ name, label, first = false, toHow }: FormProps) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    if (await signIn(toHow(text))) await enter();
    setBusy(false);
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <input type="text" name="username" autocomplete="username" hidden readOnly />
      <label class="field">
        <span>{label}</span>
        <input
          type="password"
          name={name}
          autocomplete={name === "token" ? "current-password" : "one-time-code"}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          autofocus={first}
        />
      </label>
      <button class={first ? "button primary" : "button"} type="submit" disabled={busy || !text.trim()}>
        {busy ? "Signing in…" : first ? "Sign in" : "Sign in with the token"}
      </button>
    </form>
  );
}

/** People paste the whole address. */
export function toCode(text: string): string {
  return /[#&?]code=([^&\s]+)/.exec(text)?.[1] ?? text.trim();
}
