// The official JavaScript SDK as a client of `bridle chat-tools`: over pipes, or over HTTP.
// node foreign_client.mjs SDK-FOLDER '{"command": […]} | {"url": …, "token": …}'
// Prints one JSON object: what it was told.

const [root, given] = process.argv.slice(2);
const where = JSON.parse(given);
const load = (path) => import(`${root}/dist/esm/client/${path}.js`);
const { Client } = await load("index");

async function way() {
  if (where.command) {
    const { StdioClientTransport } = await load("stdio");
    const [command, ...args] = where.command;
    return new StdioClientTransport({ command, args, env: where.env });
  }
  const { StreamableHTTPClientTransport } = await load("streamableHttp");
  const headers = { Authorization: `Bearer ${where.token}` };
  return new StreamableHTTPClientTransport(new URL(where.url), { requestInit: { headers } });
}

const client = new Client({ name: "foreign", version: "1" });
await client.connect(await way());
const call = async (name, args, _meta) => {
  try {
    const found = await client.callTool({ name, arguments: args, _meta });
    return { ...found.structuredContent, isError: found.isError ?? false };
  } catch (error) {
    return { refused: error.message };
  }
};
const said = {
  server: client.getServerVersion().name,
  tools: (await client.listTools()).tools.map((one) => one.name),
  added: await call("add_task", { title: "From afar", due: "tomorrow" }),
  listed: await call("list_tasks", {}),
  forged: await call("list_tasks", { user_id: "bob" }),
  bound: await call("list_tasks", {}, { "bridle/binding": { user_id: "bob" } }),
  missing: await call("complete_task", { task_id: 999 }),
  unknown: await call("no_such_tool", {}),
};
await client.close();
console.log(JSON.stringify(said));
