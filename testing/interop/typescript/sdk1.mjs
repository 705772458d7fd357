// The TypeScript SDK, first generation.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { ROOT, isUrl, run } from "./checks.mjs";

async function connect(revision, target) {
  const client = new Client({ name: "interop", version: "1" }, { capabilities: { roots: {} } });
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: ROOT }] }));
  const transport = isUrl(target)
    ? new StreamableHTTPClientTransport(new URL(target[0]))
    : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env });
  const answers = offer(transport, revision);
  await client.connect(transport);

  return {
    revision: answers.agreed,
    tools: async () => Object.fromEntries((await client.listTools()).tools.map((tool) => [tool.name, tool.inputSchema])),
    call: async (name, args, { signal, seen } = {}) => {
      const onprogress = seen && (({ progress, total }) => seen(progress, total));
      const result = await client.callTool({ name, arguments: args }, undefined, { signal, onprogress });
      return [result.content[0].text, result.isError ?? false];
    },
    close: async () => {
      await transport.terminateSession?.();
      await client.close();
    },
  };
}

// It offers its newest revision, has no setting for another, and does not tell what was agreed on.
function offer(transport, revision) {
  const answers = {};
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.method === "initialize") message.params.protocolVersion = revision;
    return send(message, options);
  };
  let take;
  Object.defineProperty(transport, "onmessage", {
    get: () => take,
    set: (handler) => {
      take = (message, extra) => {
        answers.agreed ??= message.result?.protocolVersion;
        handler(message, extra);
      };
    },
  });
  return answers;
}

await run(connect);
