// What a question is about: why it is asked, every byte that would take effect, and what is known.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Approval, Asked } from "../state/model.ts";
import { parseDiff } from "../text/diff.ts";
import { oneLine } from "../text/neutral.ts";
import { counted } from "../text/words.ts";
import { Exact } from "./bytes.tsx";
import { fromArguments } from "./changes.ts";
import { FileDiffs } from "./diff.tsx";

const EDITS = ["path", "old", "new", "edits", "content"]; // what a change that was made here tells
const TOLD = [...EDITS, "all", "patch"]; // what the server's tells, which knows the file

/** The whole of it; in the tray, only what is needed to decide. */
export function Facts({ approval, compact }: { approval: Approval; compact: boolean }): JSX.Element {
  const { asked } = approval;
  const { call } = asked;
  const changes = useMemo(
    () => (approval.diff ? parseDiff(approval.diff) : fromArguments(call.name, call.arguments)),
    [approval.diff, call],
  );
  const command = call.name === "shell" && typeof call.arguments["command"] === "string" ? call.arguments["command"] : null;
  const told = command !== null ? ["command"] : approval.diff ? TOLD : changes.length > 0 ? EDITS : [];
  const rest = Object.entries(call.arguments).filter(([name]) => !told.includes(name));
  const plain = rest.every(([, value]) => isShort(value));
  return (
    <div class="facts">
      <Why asked={asked} />
      {command !== null && <CommandLine text={command} />}
      {changes.length > 0 && <FileDiffs files={changes} label="What it would change" whole />}
      {!plain && <Rest entries={rest} />}
      <dl class="known">
        {plain && rest.map(([name, value]) => <Line key={name} name={oneLine(name, 40)}><code><Exact text={JSON.stringify(value)} /></code></Line>)}
        <Understood asked={asked} />
        {!compact && asked.cwd && <Line name="In"><code>{oneLine(asked.cwd, 300)}</code></Line>}
        {asked.sandbox && <Line name="Sandbox"><Sandbox level={asked.sandbox} network={asked.network ?? false} /></Line>}
        {Boolean(asked.times) && <Line name="Before">allowed {asked.times === 1 ? "once" : `${asked.times} times`} in this session</Line>}
      </dl>
    </div>
  );
}

function Why({ asked }: { asked: Asked }): JSX.Element {
  return (
    <p class="why">
      {oneLine(asked.reason || "It always needs approval", 400)}
      {asked.rule && <code class="rule">{oneLine(asked.rule, 200)}</code>}
    </p>
  );
}

/** A value that fits into a line, all of it. */
function isShort(value: unknown): boolean {
  return value === null || typeof value !== "object" ? JSON.stringify(value).length <= 120 : false;
}

function CommandLine({ text }: { text: string }): JSX.Element {
  return (
    <pre class="command" tabIndex={0} role="group" aria-label="The exact command">
      <span class="command-sign" aria-hidden="true">$ </span>
      <Exact text={text} />
    </pre>
  );
}

function Rest({ entries }: { entries: [string, unknown][] }): JSX.Element {
  return (
    <pre class="json" tabIndex={0} role="group" aria-label="Arguments">
      <Exact text={JSON.stringify(Object.fromEntries(entries), null, 2)} />
    </pre>
  );
}

/** Arguments that a question of its own kind does not show otherwise. */
export function More({ call, told }: { call: Readonly<Record<string, unknown>>; told: readonly string[] }): JSX.Element | null {
  const rest = Object.entries(call).filter(([name]) => !told.includes(name));
  return rest.length > 0 ? <Rest entries={rest} /> : null;
}

function Understood({ asked }: { asked: Asked }): JSX.Element | null {
  const line = asked.call.arguments["command"]; // stands above: it is not one of its own parts
  const commands = (asked.commands ?? []).filter((command) => command !== line);
  const paths = asked.paths ?? [];
  const samePath = paths.length === 1 && paths[0] === asked.call.arguments["path"];
  return (
    <>
      {commands.length > 0 && (
        <Line name={commands.length === 1 ? "Understood as" : counted(commands.length, "command")}>
          {commands.map((command, at) => <code key={at} class="piece"><Exact text={command} /></code>)}
        </Line>
      )}
      {paths.length > 0 && !samePath && (
        <Line name={counted(paths.length, "file")}>
          {paths.map((path, at) => <code key={at} class="piece"><Exact text={path} /></code>)}
        </Line>
      )}
    </>
  );
}

function Sandbox({ level, network }: { level: string; network: boolean }): JSX.Element {
  if (level === "none") return <strong class="danger">none: the command is not confined</strong>;
  if (network) return <>{oneLine(level, 80)}; if you allow it, this command gets the network</>;
  return <>{oneLine(level, 80)}</>;
}

function Line({ name, children }: { name: string; children: preact.ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
