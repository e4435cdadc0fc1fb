// A tool call as a card: what, how it stands, what it said and changed, and the question before it.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Actions, Approval, Call, CallItem, Child, Media, Role } from "../state/model.ts";
import { rowsIn, changesOf } from "./changes.ts";
import { neutral, oneLine } from "../text/neutral.ts";
import { counted, formatCost } from "../text/words.ts";
import { ApprovalCard, Answered } from "./approval.tsx";
import { FileDiffs } from "./diff.tsx";
import { Facts } from "./facts.tsx";
import { Fold, useFold } from "./folds.tsx";
import { Markdown } from "./markdown.tsx";
import { Output } from "./output.tsx";
import { childWords, restOf, resultText, status, subject, took } from "./summary.ts";

interface CallProps {
  readonly item: CallItem;
  readonly actions: Actions;
  readonly role: Role;
  readonly past: boolean;
}

const FEW_ROWS = 40;
const NAMES: Readonly<Record<string, string>> = { exit_plan_mode: "plan", ask_user: "question", todo_write: "todo list" };
const SELF_TOLD = new Set(["todo_write", "ask_user", "exit_plan_mode"]);

/** The card of a call. */
export function CallCard({ item, actions, role, past }: CallProps): JSX.Element {
  const { call } = item;
  const asks = call.approval?.state === "open" || call.approval?.state === "posted";
  const [open, toggle] = useFold(item.key, opensByItself(call));
  return (
    <div class={`call call-${call.status}`} data-call={call.id}>
      <button type="button" class="call-line" aria-expanded={open} onClick={toggle} id={`who-${item.key}`}>
        <span class="call-dot" aria-hidden="true" />
        <span class="call-name">{NAMES[call.name] ?? oneLine(call.name, 60)}</span>
        <span class="call-subject">{subject(call)}</span>
        <span class="call-status">{[item.discarded ? "discarded, not run" : status(call), took(call)].filter(Boolean).join(" · ")}</span>
      </button>
      {call.children.map((child) => (
        <ChildLine key={child.sessionId} child={child} actions={actions} />
      ))}
      {asks && call.approval && !past && <ApprovalCard approval={call.approval} actions={actions} role={role} />}
      {asks && call.approval && past && <AskedThen approval={call.approval} />}
      {!asks && call.approval && <Answered approval={call.approval} />}
      {call.status === "running" && (
        <Output id={item.key} text={call.output} end live cut={call.outputCut} label={`What ${call.name} says`} />
      )}
      {open && <Body item={item} asks={asks} />}
    </div>
  );
}

/** A request as it was at that time: it is answered now, or can be. */
function AskedThen({ approval }: { approval: Approval }): JSX.Element {
  return (
    <section class="question" aria-label="An approval request of that time">
      <Facts approval={approval} compact={false} />
      <p class="note">It needed an answer at this point. Go back to now to answer what still needs one.</p>
    </section>
  );
}

function opensByItself(call: Call): boolean {
  if (call.approval?.state === "open") return false; // the request shows everything itself
  if (call.status === "failed" || call.status === "stopped" || call.status === "unknown") return true;
  if (SELF_TOLD.has(call.name)) return false;
  return call.status === "done" && rowsIn(changesOf(call)) > 0 && rowsIn(changesOf(call)) <= FEW_ROWS;
}

function Body({ item, asks }: { item: CallItem; asks: boolean }): JSX.Element {
  const { call, key } = item;
  const changes = useMemo(() => changesOf(call), [call]);
  const rest = restOf(call);
  const said = call.result ? resultText(call) : "";
  const plan = call.name === "exit_plan_mode" ? call.arguments["plan"] : null;
  return (
    <div class="call-body">
      {!asks && call.name === "shell" && <Command text={String(call.arguments["command"] ?? "")} />}
      {typeof plan === "string" && !asks && <Markdown text={plan} />}
      {!asks && changes.length > 0 && <FileDiffs files={changes} />}
      {rest && plan === null && !asks && (
        <Fold id={`${key}-arguments`} open={subject(call) === "" || !call.result} label="Arguments">
          {() => <pre class="json" tabIndex={0} role="group" aria-label="Arguments">{neutral(rest)}</pre>}
        </Fold>
      )}
      {said && changes.length === 0 && (
        <Output id={`${key}-result`} text={said} end={call.name === "shell"} label={`Result of ${call.name}`} />
      )}
      {said && changes.length > 0 && !call.result?.ok && <Output id={`${key}-result`} text={said} end={false} label={`Result of ${call.name}`} />}
      {call.result?.media.map((media, at) => <MediaNote key={at} media={media} />)}
      {call.uncovered.length > 0 && <p class="note">Undo does not cover: {call.uncovered.map((one) => neutral(one)).join("; ")}</p>}
    </div>
  );
}

/** A command, every character of it. */
function Command({ text }: { text: string }): JSX.Element {
  return (
    <pre class="command" tabIndex={0} role="group" aria-label="Command">
      <span class="command-sign" aria-hidden="true">$ </span>
      {neutral(text)}
    </pre>
  );
}

/** A picture or a file that came with something: named, not shown. */
export function MediaNote({ media }: { media: Media }): JSX.Element {
  const size = Math.ceil((media.data.length * 3) / 4 / 1024);
  const name = neutral(media.name || media.url || media.mediaType || media.type);
  return <p class="note">{`${media.type === "image" ? "Picture" : "File"}: ${name}${size ? `, ${size} KB` : ""}`}</p>;
}

/** Is it another agent than our own loop? */
function isOther(agent: string): boolean {
  return agent !== "" && agent !== "loop";
}

function ChildLine({ child, actions }: { child: Child; actions: Actions }): JSX.Element {
  const used = [child.tokens ? counted(child.tokens, "token") : "", child.cost || child.unpriced ? formatCost(child.cost, child.unpriced) : ""].filter(Boolean);
  return (
    <button type="button" class={`child child-${child.state}`} onClick={() => actions.openSession(child.sessionId)}>
      <span class="child-mark" aria-hidden="true">↳</span>
      <span>Child session{isOther(child.agent) ? ` of ${oneLine(child.agent, 40)}` : ""}: {childWords(child)}</span>
      {used.length > 0 && <span class="child-used">{used.join(" · ")}</span>}
      <span class="child-go">Open</span>
    </button>
  );
}
