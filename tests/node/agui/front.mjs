// A front end on the official AG-UI client: node front.mjs LIBRARY URL TOKEN THREAD
//
// It does what its own input says, a JSON object a line: {n, say, resume, tools} runs the agent with
// a message of the person or with answers, {abort} stops the run. What it sees goes out the same
// way: {event} for each event, and {n, messages, state, result, error} when the run is over. The
// library checks every event, and the order of all of them.
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

const [library, url, token, threadId] = process.argv.slice(2);
const { HttpAgent } = await import(library);
const headers = { Authorization: `Bearer ${token}` };
const agent = new HttpAgent({ url, headers, threadId });
const out = (message) => process.stdout.write(JSON.stringify(message) + "\n");

async function run({ n, say, id, resume, tools }) {
  if (say) agent.addMessage({ id: id ?? randomUUID(), role: "user", content: say });
  const found = { n };
  try {
    const given = { runId: randomUUID(), ...(resume && { resume }), ...(tools && { tools }) };
    await agent.runAgent(given, { onEvent: ({ event }) => out({ event }) });
  } catch (error) {
    found.error = String(error.message);
  }
  out({ ...found, messages: agent.messages, state: agent.state });
}

for await (const line of createInterface({ input: process.stdin })) {
  const given = JSON.parse(line);
  if (given.abort) agent.abortRun();
  else run(given);
}
