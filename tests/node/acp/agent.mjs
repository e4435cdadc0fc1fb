// A scripted ACP agent on the official TypeScript library: node agent.mjs LIBRARY FOLDER
//
// It edits FOLDER/a.txt when it is told so, after asking, by having the client write it; it runs a
// command in the client's terminal; and it waits for a cancel when the prompt is "wait".
import { Readable, Writable } from "node:stream";

const [library, folder] = process.argv.slice(2);
const acp = await import(library);
const path = `${folder}/a.txt`;
const told = new Map();

function update(client, sessionId, update) {
  return client.notify("session/update", { sessionId, update });
}

function say(client, sessionId, text) {
  const content = { type: "text", text };
  return update(client, sessionId, { sessionUpdate: "agent_message_chunk", content });
}

async function edit(client, sessionId) {
  const toolCallId = "edit-1";
  const diff = { type: "diff", path, oldText: "one\n", newText: "two\n" };
  const call = { toolCallId, title: "Edit a.txt", kind: "edit", content: [diff] };
  await update(client, sessionId, { sessionUpdate: "tool_call", status: "pending", ...call });
  const answer = await client.request("session/request_permission", {
    sessionId,
    toolCall: call,
    options: [
      { optionId: "forever", name: "Always", kind: "allow_always" },
      { optionId: "proceed_once", name: "Yes", kind: "allow_once" },
      { optionId: "cancel", name: "No", kind: "reject_once" },
    ],
  });
  const chosen = answer.outcome.optionId;
  if (chosen === "proceed_once") {
    await client.request("fs/write_text_file", { sessionId, path, content: "two\n" });
  }
  const status = chosen === "proceed_once" ? "completed" : "failed";
  await update(client, sessionId, { sessionUpdate: "tool_call_update", toolCallId, status });
  await say(client, sessionId, `chosen=${chosen} `);
}

async function run(client, sessionId) {
  const { content } = await client.request("fs/read_text_file", { sessionId, path });
  const given = { sessionId, command: "printf", args: ["%s", "from a terminal"] };
  const terminal = await client.createTerminal(given);
  const { exitCode } = await terminal.waitForExit();
  const { output } = await terminal.currentOutput();
  await terminal.release();
  await say(client, sessionId, `read=${JSON.stringify(content)} ran=${exitCode}:${output}`);
}

const agent = acp
  .agent({ name: "scripted" })
  .onRequest("initialize", () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: { loadSession: true },
  }))
  .onRequest("session/new", () => ({ sessionId: "typed-1" }))
  .onRequest("session/load", ({ params }) => {
    if (params.sessionId !== "typed-1") throw acp.RequestError.resourceNotFound(params.sessionId);
    return {};
  })
  .onRequest("session/prompt", async ({ params, client }) => {
    const { sessionId } = params;
    if (params.prompt[0].text === "wait") {
      await say(client, sessionId, "waiting");
      await new Promise((resolve) => told.set(sessionId, resolve));
      return { stopReason: "cancelled" };
    }
    await edit(client, sessionId);
    await run(client, sessionId);
    return { stopReason: "end_turn" };
  })
  .onNotification("session/cancel", ({ params }) => told.get(params.sessionId)?.());

agent.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
