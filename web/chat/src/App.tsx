// The page as a whole: three columns, or on a phone one with two tabs.

import { Half, List, Moon, Plus, Sun } from "../../src/shell/icons.tsx";
import { nextTheme, theme } from "../../src/shell/theme.ts";
import { Chooser } from "./Chooser.tsx";
import { Conversations, Removing } from "./Conversations.tsx";
import { go, signOut } from "./living.ts";
import { SignIn } from "./SignIn.tsx";
import { drawer, gate, linked, me, tab, tasks, title, words } from "./state.ts";
import { Talk } from "./Talk.tsx";
import { TaskList } from "./TaskList.tsx";

export function App() {
  if (gate.value !== "in") return <SignIn />;
  const beside = me.value?.tasks ?? false;
  return (
    <>
      <a class="skip" href="#say" onClick={toField}>
        {words.value.write}
      </a>
      <Header beside={beside} />
      {!linked.value && (
        <p class="offline" role="status">
          {words.value.offline}
        </p>
      )}
      <div class={`columns shows-${tab.value}${drawer.value ? " drawn" : ""}${beside ? "" : " alone"}`}>
        <Conversations />
        {drawer.value && <div class="veil" onClick={() => (drawer.value = false)} />}
        <Talk />
        {beside && <TaskList />}
      </div>
      <Removing />
    </>
  );
}

function toField(event: Event): void {
  event.preventDefault();
  document.getElementById("say")?.focus();
}

function Header({ beside }: { readonly beside: boolean }) {
  const w = words.value;
  return (
    <header class="top">
      <button
        class="button plain square only-narrow"
        aria-label={w.menu}
        aria-expanded={drawer.value}
        onClick={() => (drawer.value = !drawer.value)}
      >
        <List />
      </button>
      <img class="mark" src="/chat/favicon.svg" alt="" width="24" height="24" />
      <h1>
        <bdi>{title.value}</bdi>
      </h1>
      {beside && <Tabs />}
      <span class="space" />
      <span class="not-phone">
        <Chooser />
      </span>
      <button class="button plain square" aria-label={`${w.theme}: ${theme.value}`} title={w.theme} onClick={nextTheme}>
        {theme.value === "auto" ? <Half /> : theme.value === "light" ? <Sun /> : <Moon />}
      </button>
      <button class="button plain square only-narrow" aria-label={w.newOne} onClick={() => go(null)}>
        <Plus />
      </button>
      <span class="user only-wide" title={me.value?.user_id}>
        <bdi>{me.value?.user_id}</bdi>
      </span>
      <button class="button plain small only-wide" onClick={() => signOut()}>
        {w.signOut}
      </button>
    </header>
  );
}

/** Which of the two a phone shows; with room for both they are side by side. */
function Tabs() {
  const w = words.value;
  return (
    <nav class="tabs only-phone" aria-label={`${w.chat}, ${w.tasks}`}>
      <button class="tab" aria-pressed={tab.value === "chat"} onClick={() => (tab.value = "chat")}>
        {w.chat}
      </button>
      <button class="tab" aria-pressed={tab.value === "tasks"} onClick={() => (tab.value = "tasks")}>
        {w.tasks} <span class="number">{tasks.value.open}</span>
      </button>
    </nav>
  );
}
