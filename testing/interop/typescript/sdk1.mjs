// The TypeScript SDK, first generation.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { ROOT, capabilities, elicited, isUrl, logged, run, sampled, updated } from "./checks.mjs";

async function connect(revision, target) {
  const client = new Client({ name: "interop", version: "1" }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => elicited(params));
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => sampled(params));
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: ROOT }] }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => logged(params));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updated(params));
  const transport = isUrl(target)
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, env: process.env });
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
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
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
