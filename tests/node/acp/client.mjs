// An ACP client on the official TypeScript library: node client.mjs LIBRARY FOLDER COMMAND WORDS...
//
// It starts the agent, prompts it twice in FOLDER, allows what it asks, stops it once, and prints
// what it saw as JSON. The library checks every message against the schema of the protocol.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [library, folder, command, ...words] = process.argv.slice(2);
const acp = await import(library);
const child = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
const seen = { updates: [], asked: [], files: {}, ends: [] };
let agent;

const client = acp
  .client({ name: "referee" })
  .onRequest("session/request_permission", ({ params }) => {
    seen.asked.push(params.toolCall);
    const { optionId } = params.options.find((one) => one.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  })
  .onRequest("fs/read_text_file", ({ params }) => ({ content: `text of ${params.path}` }))
  .onRequest("fs/write_text_file", ({ params }) => {
    seen.files[params.path] = params.content;
    return {};
  })
  .onRequest("terminal/create", () => ({ terminalId: "t1" }))
  .onRequest("terminal/wait_for_exit", () => ({ exitCode: 0 }))
  .onRequest("terminal/output", () => ({ output: "ran", truncated: false }))
  .onRequest("terminal/release", () => ({}))
  .onNotification("session/update", async ({ params }) => {
    seen.updates.push(params.update);
    if (params.update.content?.text === "waiting") {
      await agent.notify("session/cancel", { sessionId: params.sessionId });
    }
  });

const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
await client.connectWith(stream, async (context) => {
  agent = context;
  seen.hello = await context.request("initialize", {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
  });
  const { sessionId, modes } = await context.request("session/new", { cwd: folder, mcpServers: [] });
  seen.modes = modes;
  await context.request("session/set_mode", { sessionId, modeId: "default" });
  for (const text of ["first", "second"]) {
    const prompt = [{ type: "text", text }];
    seen.ends.push(await context.request("session/prompt", { sessionId, prompt }));
  }
  await context.request("session/load", { sessionId, cwd: folder, mcpServers: [] });
  seen.stale = await context
    .request("session/load", { sessionId: "gone", cwd: folder, mcpServers: [] })
    .catch((error) => error.code);
});
child.kill();
console.log(JSON.stringify(seen));
