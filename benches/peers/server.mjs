// The TypeScript SDK as a peer of the stdio bench: the low-level server, with the tools that the reference server has.
//
// `cargo xtask bench` installs the package for it and runs a copy beside `node_modules`, because Node looks for packages
// in the folders above a script; the version is pinned in `xtask/src/bench/peers.rs`.

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const server = new Server({ name: "bench-peer", version: "0" }, { capabilities: { tools: {} } });

const tools = [
  {
    name: "add",
    description: "Adds two integers.",
    inputSchema: {
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "integer" } },
      required: ["a", "b"],
    },
  },
  {
    name: "blob",
    description: "Answers with so many bytes of text.",
    inputSchema: {
      type: "object",
      properties: { bytes: { type: "integer", minimum: 0, default: 65536 } },
    },
  },
];

server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools }));

server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: given = {} } }) => {
  switch (name) {
    case "add":
      return { content: [{ type: "text", text: String(given.a + given.b) }] };
    case "blob":
      return { content: [{ type: "text", text: "x".repeat(given.bytes ?? 65536) }] };
    default:
      throw new Error(`unknown tool: ${name}`);
  }
});

await server.connect(new StdioServerTransport());
