// The TypeScript SDK, second generation.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { ROOT, isUrl, run } from "./checks.mjs";

async function connect(revision, target) {
  const modern = revision >= "2026";
  const client = new Client(
    { name: "interop", version: "1" },
    {
      capabilities: { roots: {} },
      // The first of the older ones is what it offers.
      supportedProtocolVersions: [revision],
      versionNegotiation: { mode: modern ? "auto" : "legacy" },
    },
  );
  client.setRequestHandler("roots/list", () => ({ roots: [{ uri: ROOT }] }));
  const transport = isUrl(target)
    ? new StreamableHTTPClientTransport(new URL(target[0]))
    : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env });
  await client.connect(transport);

  return {
    revision: client.getNegotiatedProtocolVersion(),
    tools: async () => Object.fromEntries((await client.listTools()).tools.map((tool) => [tool.name, tool.inputSchema])),
    call: async (name, args, { signal, seen } = {}) => {
      const onprogress = seen && (({ progress, total }) => seen(progress, total));
      const result = await client.callTool({ name, arguments: args }, { signal, onprogress });
      return [result.content[0].text, result.isError ?? false];
    },
    close: async () => {
      await transport.terminateSession?.();
      await client.close();
    },
  };
}

await run(connect);
