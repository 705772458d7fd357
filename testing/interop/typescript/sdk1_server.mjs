// A server of the TypeScript SDK, first generation.

import { randomUUID } from "node:crypto";
import http from "node:http";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

import { CAPABILITIES, INFO, METHODS } from "./offers.mjs";

const REQUESTS = [
  types.ListToolsRequestSchema,
  types.CallToolRequestSchema,
  types.ListResourcesRequestSchema,
  types.ListResourceTemplatesRequestSchema,
  types.ReadResourceRequestSchema,
  types.SubscribeRequestSchema,
  types.UnsubscribeRequestSchema,
  types.ListPromptsRequestSchema,
  types.GetPromptRequestSchema,
  types.CompleteRequestSchema,
];

const ASKED = {
  "elicitation/create": types.ElicitResultSchema,
  "sampling/createMessage": types.CreateMessageResultSchema,
  "roots/list": types.ListRootsResultSchema,
};

function serving() {
  const server = new Server(INFO, { capabilities: CAPABILITIES, instructions: "Be kind." });
  for (const schema of REQUESTS) {
    server.setRequestHandler(schema, ({ method, params }, extra) => METHODS[method](params ?? {}, peer(server, extra)));
  }
  return server;
}

function peer(server, extra) {
  return {
    signal: extra.signal,
    progress: async (progress, total) => {
      const progressToken = extra._meta?.progressToken;
      if (progressToken === undefined) return;
      await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total } });
    },
    log: (level, data) => server.sendLoggingMessage({ level, data }, extra.sessionId),
    ask: (method, params) => extra.sendRequest({ method, params }, ASKED[method]),
    updated: (uri) => server.sendResourceUpdated({ uri }),
    toolsChanged: () => server.sendToolListChanged(),
  };
}

const sessions = new Map();

async function streamable(request, response) {
  let transport = sessions.get(request.headers["mcp-session-id"]);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await serving().connect(transport);
  }
  await transport.handleRequest(request, response);
}

async function sse(request, response) {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  if (pathname === "/messages") {
    await sessions.get(searchParams.get("sessionId"))?.handlePostMessage(request, response);
    return;
  }
  // Where newer clients begin, which is how they find out.
  if (request.method !== "GET") return response.writeHead(405).end();
  const transport = new SSEServerTransport("/messages", response);
  sessions.set(transport.sessionId, transport);
  await serving().connect(transport);
}

const way = process.argv.at(-1);
if (way === "stdio") await serving().connect(new StdioServerTransport());
else http.createServer(way === "sse" ? sse : streamable).listen(0, "127.0.0.1");
