// A server of the TypeScript SDK, second generation.

import { randomUUID } from "node:crypto";
import http from "node:http";
import { Readable } from "node:stream";

import {
  Server,
  WebStandardStreamableHTTPServerTransport,
  createMcpHandler,
  inputRequired,
  isLegacyRequest,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { Asks, CAPABILITIES, INFO, METHODS } from "./offers.mjs";

// Streams of 2026-07-28 over HTTP are no part of a server that was made for one request.
let notify;

function serving() {
  const server = new Server(INFO, { capabilities: CAPABILITIES, instructions: "Be kind." });
  for (const [method, answer] of Object.entries(METHODS)) {
    server.setRequestHandler(method, async ({ params }, context) => {
      try {
        return await answer(params ?? {}, peer(server, context));
      } catch (error) {
        if (error instanceof Asks) return inputRequired({ inputRequests: error.requests });
        throw error;
      }
    });
  }
  return server;
}

function peer(server, { mcpReq }) {
  return {
    signal: mcpReq.signal,
    progress: async (progress, total) => {
      const progressToken = mcpReq._meta?.progressToken;
      if (progressToken === undefined) return;
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total } });
    },
    log: (level, data) => mcpReq.log(level, data),
    // The SDK asks clients of the older revisions itself, and calls the handler again.
    ask: (method, params) => {
      const answer = mcpReq.inputResponses?.[method];
      if (answer === undefined) throw new Asks({ [method]: { method, params } });
      return answer;
    },
    updated: (uri) => (notify ? notify.resourceUpdated(uri) : undefined, server.sendResourceUpdated({ uri })),
    toolsChanged: () => (notify ? notify.toolsChanged() : undefined, server.sendToolListChanged()),
  };
}

const sessions = new Map();

// What it has for the older revisions keeps no session unless it is given one.
async function legacy(request) {
  let transport = sessions.get(request.headers.get("mcp-session-id"));
  if (!transport) {
    transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await serving().connect(transport);
  }
  return transport.handleRequest(request);
}

function listen() {
  const modern = createMcpHandler(serving, { legacy: "reject" });
  notify = modern.notify;
  const answer = async (request) => ((await isLegacyRequest(request.clone())) ? legacy(request) : modern.fetch(request));
  http.createServer((request, response) => carry(request, response, answer)).listen(0, "127.0.0.1");
}

// From the requests of Node to those of the web, and back.
async function carry(request, response, answer) {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const body = ["GET", "HEAD"].includes(request.method) ? {} : { body: Readable.toWeb(request), duplex: "half" };
  const url = new URL(request.url, `http://${request.headers.host}`);
  const answered = await answer(
    new Request(url, { method: request.method, headers: request.headers, signal: gone.signal, ...body }),
  );
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  response.flushHeaders();
  if (!answered.body) return response.end();
  const stream = Readable.fromWeb(answered.body);
  stream.on("error", () => response.destroy());
  response.on("close", () => stream.destroy());
  stream.pipe(response);
}

if (process.argv.at(-1) === "stdio") serveStdio(serving);
else listen();
