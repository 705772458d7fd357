// What the servers offer, whichever SDK serves it: an answer to each method, as the JSON of its result.
//
// A script gives every request a peer: who is asked, told and notified in the words of its SDK.

import { appendFileSync, readFileSync } from "node:fs";

export const OFFERS = JSON.parse(readFileSync(new URL("offers.json", import.meta.url), "utf8"));
const PAGE = 4;
const LEVELS = ["debug", "info", "notice", "warning", "error"];

export const INFO = { name: "interop", version: "1" };

export const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
};

const state = { counter: 0, tools: [...OFFERS.tools] };

// A protocol error; the SDKs send what has a code as it is.
function refused(code, message) {
  return Object.assign(new Error(message), { code });
}

// The question that comes in place of a result.
export class Asks extends Error {
  constructor(requests) {
    super("input required");
    this.requests = requests;
  }
}

export const METHODS = {
  "tools/list": ({ cursor }) => {
    const begin = Number(cursor ?? 0);
    const more = begin + PAGE < state.tools.length;
    return { tools: state.tools.slice(begin, begin + PAGE), ...(more && { nextCursor: String(begin + PAGE) }) };
  },
  "tools/call": ({ name, arguments: args }, peer) => {
    if (!TOOLS[name]) throw refused(-32602, `there is no tool ${name}`);
    return TOOLS[name](args ?? {}, peer);
  },
  "resources/list": () => ({ resources: OFFERS.resources }),
  "resources/templates/list": () => ({ resourceTemplates: OFFERS.resourceTemplates }),
  "resources/read": ({ uri }) => {
    const text = resource(uri);
    if (text === undefined) throw refused(-32002, `there is no resource ${uri}`);
    return { contents: [{ uri, mimeType: "text/plain", text }] };
  },
  "resources/subscribe": () => ({}),
  "resources/unsubscribe": () => ({}),
  "prompts/list": () => ({ prompts: OFFERS.prompts }),
  "prompts/get": ({ name, arguments: args }) => {
    if (name !== "explain") throw refused(-32602, `there is no prompt ${name}`);
    const text = `Explain ${args.topic} to ${args.audience ?? "anyone"}.`;
    return { messages: [{ role: "user", content: { type: "text", text } }] };
  },
  "completion/complete": ({ argument: { name, value } }) => ({
    completion: { values: (OFFERS.completions[name] ?? []).filter((known) => known.startsWith(value)) },
  }),
};

function resource(uri) {
  if (uri === "interop://counter") return String(state.counter);
  const greetings = "interop://greetings/";
  return uri.startsWith(greetings) ? `Hello, ${uri.slice(greetings.length)}!` : undefined;
}

const text = (words, more) => ({ content: [{ type: "text", text: words }], ...more });

const TOOLS = {
  add: ({ a, b }) => text(String(a + b)),
  measure: ({ text: measured }) => {
    const structuredContent = { characters: [...measured].length, words: measured.split(/\s+/).length };
    return text(JSON.stringify(structuredContent), { structuredContent });
  },
  fail: () => text("it failed on purpose", { isError: true }),
  progress: async ({ steps }, peer) => {
    for (let step = 1; step <= steps; step++) await peer.progress(step, steps);
    return text(`${steps} steps`);
  },
  wait: async (_, peer) => {
    await peer.progress(1, 2);
    await new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, 600_000);
      peer.signal.addEventListener("abort", () => {
        clearTimeout(timer);
        appendFileSync(process.env.CLEANUP_LOG, "stopped\n");
        reject(new Error("stopped"));
      });
    });
    return text("waited");
  },
  log: async (_, peer) => {
    for (const level of LEVELS) await peer.log(level, `careful: ${level}`);
    return text("logged");
  },
  greet: async (_, peer) => {
    const { action, content } = await peer.ask("elicitation/create", OFFERS.form);
    if (action !== "accept") return text(action);
    return text(JSON.stringify(Object.fromEntries(Object.entries(content).sort())));
  },
  consult: async (_, peer) => text((await peer.ask("sampling/createMessage", OFFERS.sampling)).content.text),
  look: async (_, peer) => text((await peer.ask("roots/list", {})).roots.map(({ uri }) => uri).join(" ")),
  touch: async (_, peer) => {
    state.counter += 1;
    await peer.updated("interop://counter");
    return text("touched");
  },
  grow: async (_, peer) => {
    if (!state.tools.includes(OFFERS.grown)) state.tools.push(OFFERS.grown);
    await peer.toolsChanged();
    return text("grown");
  },
};
