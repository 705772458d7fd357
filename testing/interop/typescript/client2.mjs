// The TypeScript SDK, second generation.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { ROOT, capabilities, elicited, isUrl, logged, run, sampled, updated } from "./checks.mjs";

const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

async function connect(revision, target) {
  const modern = revision >= "2026";
  const client = new Client(
    { name: "interop", version: "1" },
    {
      capabilities,
      // The first of the older ones is what it offers.
      supportedProtocolVersions: [revision],
      versionNegotiation: { mode: modern ? "auto" : "legacy" },
    },
  );
  client.setRequestHandler("elicitation/create", ({ params }) => elicited(params));
  client.setRequestHandler("sampling/createMessage", ({ params }) => sampled(params));
  client.setRequestHandler("roots/list", () => ({ roots: [{ uri: ROOT }] }));
  client.setNotificationHandler("notifications/message", ({ params }) => logged(params));
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => updated(params));
  const transport = isUrl(target)
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, env: process.env });
  await client.connect(transport);

  return {
    revision: client.getNegotiatedProtocolVersion(),
    tools: async () => Object.fromEntries((await client.listTools()).tools.map((tool) => [tool.name, tool.inputSchema])),
    call: async (name, args, { signal, seen, log } = {}) => {
      const onprogress = seen && (({ progress, total }) => seen(progress, total));
      const _meta = log && modern ? { [LOG_LEVEL]: log } : undefined;
      const result = await client.callTool({ name, arguments: args, _meta }, { signal, onprogress });
      return [result.content[0].text, result.isError ?? false];
    },
    resources: async () => [
      (await client.listResources()).resources.map(({ uri }) => uri),
      (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    ],
    read: async (uri) => (await client.readResource({ uri })).contents[0].text,
    prompts: async () =>
      Object.fromEntries(
        (await client.listPrompts()).prompts.map((prompt) => [
          prompt.name,
          prompt.arguments.map((argument) => [argument.name, argument.required]),
        ]),
      ),
    prompt: async (name, args) => (await client.getPrompt({ name, arguments: args })).messages[0].content.text,
    complete: async (ref, name, value) => (await client.complete({ ref, argument: { name, value } })).completion.values,
    logLevel: (level) => client.setLoggingLevel(level),
    subscribe: async (uri) => {
      if (modern) {
        const subscription = await client.listen({ resourceSubscriptions: [uri] });
        return () => subscription.close();
      }
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    },
    close: async () => {
      await transport.terminateSession?.();
      await client.close();
    },
  };
}

await run(connect);
