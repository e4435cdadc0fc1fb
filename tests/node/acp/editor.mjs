// An editor on the official TypeScript library: node editor.mjs LIBRARY COMMAND WORDS...
//
// It starts the agent and does what its own input says, a JSON object a line: {n, request, params},
// {notify, params}, {answer, optionId} (no optionId: cancelled), {kill: SIGNAL}. What it sees goes
// out the same way: {n, result} or {n, error}, {update}, {asked, params}, {withdrawn}, {ended}. The
// library checks every message against the schema of the protocol.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";

const [library, command, ...words] = process.argv.slice(2);
const acp = await import(library);
const child = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const answers = new Map();
let count = 0;

const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(signal ?? code)));

const client = acp
  .client({ name: "editor" })
  .onRequest("session/request_permission", ({ params, signal }) => {
    const number = ++count;
    say({ asked: number, params });
    signal.addEventListener("abort", () => {
      say({ withdrawn: number });
      answers.get(number)?.({ outcome: { outcome: "cancelled" } });
    });
    return new Promise((resolve) => answers.set(number, resolve));
  })
  .onNotification("session/update", ({ params }) => say({ update: params }));

const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const talk = client.connectWith(stream, async (agent) => {
  for await (const line of createInterface({ input: process.stdin })) {
    const { n, request, notify, params, answer, optionId, kill } = JSON.parse(line);
    if (request) {
      agent.request(request, params).then(
        (result) => say({ n, result }),
        (error) => say({ n, error: { code: error.code, message: error.message, data: error.data } }),
      );
    } else if (notify) {
      await agent.notify(notify, params);
    } else if (answer) {
      const outcome = optionId ? { outcome: "selected", optionId } : { outcome: "cancelled" };
      answers.get(answer)({ outcome });
    } else if (kill) {
      child.kill(kill);
    }
  }
});
await talk.catch(() => {}); // the agent may be killed, and says nothing more
child.stdin.end();
say({ ended: await ended });
process.exit(0);
