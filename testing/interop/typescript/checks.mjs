// What each check does, told to a client through the few words that all of them have.
//
// A check reports what it saw and never judges it: the driver does. A client script gives `run` a way to connect, which
// resolves to a peer:
//
//   revision                                    the revision that was agreed on
//   tools()                                     {name: input schema}
//   call(name, arguments, {signal, seen, log})  [text, isError]; seen(progress, total) is told of progress; log is the level
//                                               of log messages that this call asks for, where calls do (2026-07-28)
//   resources()                                 [URIs, URI templates]
//   read(uri)                                   the text of a resource
//   prompts()                                   {name: [[argument, required]]}
//   prompt(name, arguments)                     the text of its first message
//   complete(ref, argument, typed)              values
//   logLevel(level)                             asks for log messages, where connections do (up to 2025-11-25)
//   subscribe(uri)                              a function that ends it; changes of the resource are told to `updated`
//   close()                                     ends the connection as users of that client do
//
// The functions `elicited`, `sampled`, `logged` and `updated` are for the client's callbacks, to say what it was asked and
// told and to learn what to answer.

import fs from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

export const ROOT = "file:///interop";
const COUNTER = "steadfast://counter";
const LONG = 60_000;
const AT_ONCE = 32;
const LIMIT = 30_000;

// What happens besides the answers of one check.
let world;

// The first question is answered, the second is declined.
export function elicited({ message, requestedSchema }) {
  world.questions.push([message, Object.keys(requestedSchema.properties).sort()]);
  const first = world.questions.length === 1;
  return first ? { action: "accept", content: { name: "Ada", manner: "formal" } } : { action: "decline" };
}

export function sampled({ messages }) {
  const { content } = messages[0];
  world.questions.push((Array.isArray(content) ? content[0] : content).text);
  return { role: "assistant", model: "interop", content: { type: "text", text: "Paris" } };
}

export const logged = ({ level, data }) => world.logs.push([level, data]);

export const updated = ({ uri }) => world.updates.push(uri);

const checks = {
  async list(peer) {
    const tools = await peer.tools();
    return { tools: Object.keys(tools).sort(), add: Object.keys(tools.add.properties).sort() };
  },

  async call(peer) {
    return { add: await add(peer), echo: await peer.call("echo", { text: "héllo\n\u2028 𝄞" }) };
  },

  async large(peer) {
    const [text, is_error] = await peer.call("blob", { bytes: 1 << 19 });
    return { length: text.length, is_error };
  },

  async errors(peer) {
    const [, bad_arguments] = await peer.call("add", { a: "two", b: 3 });
    const codes = {};
    for (const tool of ["no_such_tool", "panic"]) codes[tool] = await code(peer.call(tool, {}));
    return { bad_arguments, codes, afterwards: await add(peer) };
  },

  async print(peer) {
    return { printed: await peer.call("print", { text: '{"jsonrpc":"2.0"}' }), add: await add(peer) };
  },

  async concurrent(peer) {
    const one = (_, n) => peer.call("echo", { text: `call ${n}` });
    return { answers: await Promise.all(Array.from({ length: AT_ONCE }, one)) };
  },

  async progress(peer) {
    const steps = [];
    const [text] = await peer.call("progress", { steps: 4, ms: 200 }, { seen: (...step) => steps.push(step) });
    return { text, steps };
  },

  async log(peer) {
    if (peer.revision < "2026") await peer.logLevel("warning");
    const answer = await peer.call("log", { text: "careful" }, { log: "warning" });
    await until(() => world.logs.length >= 2);
    return { answer, logs: world.logs };
  },

  async resources(peer) {
    const [resources, templates] = await peer.resources();
    const texts = {};
    for (const uri of [COUNTER, "steadfast://laws/L8"]) texts[uri] = await peer.read(uri);
    // Two codes mean the same, by revision, and some clients say one for the other.
    const not_found = [-32002, -32602].includes(await code(peer.read("steadfast://laws/L99")));
    return { resources: resources.sort(), templates: templates.sort(), texts, not_found };
  },

  async subscribe(peer) {
    const end = await peer.subscribe(COUNTER);
    const before = await peer.read(COUNTER);
    await peer.call("count", {});
    await until(() => world.updates.length > 0);
    const after = await peer.read(COUNTER);
    await end();
    // No subscription is left: this change must not be reported.
    await peer.call("count", {});
    return { before, after, at_the_end: await peer.read(COUNTER), updates: world.updates };
  },

  async prompts(peer) {
    const prompts = await peer.prompts();
    const text = await peer.prompt("explain_law", { law: "L8", audience: "a child" });
    return { prompts, text, refused: (await code(peer.prompt("no_such_prompt", {}))) === -32602 };
  },

  async complete(peer) {
    const prompt = { type: "ref/prompt", name: "explain_law" };
    return {
      law: await peer.complete(prompt, "law", "l1"),
      audience: await peer.complete(prompt, "audience", "a c"),
      template: await peer.complete({ type: "ref/resource", uri: "steadfast://laws/{law}" }, "law", "L1"),
    };
  },

  async elicit(peer) {
    const accepted = await peer.call("ask_user", {});
    const declined = await peer.call("ask_user", {});
    return { questions: world.questions, accepted, declined };
  },

  async sample(peer) {
    const answer = await peer.call("ask_model", { question: "What is the capital of France?" });
    return { questions: world.questions, answer };
  },

  async roots(peer) {
    return { roots: await peer.call("ask_roots", {}) };
  },

  // Its connection is cut between the second step and the third.
  async resume(peer) {
    return checks.progress(peer);
  },

  async release(peer) {
    return { answer: await peer.call("release_connection", { ms: 200 }), afterwards: await add(peer) };
  },

  async cancel(peer) {
    const giveUp = new AbortController();
    const { ended } = await begin(peer, giveUp.signal);
    giveUp.abort("interop");
    await ended;
    // The connection is still open: the line is there because of the cancellation, not because of its end.
    const cleaned_up = await until(() => fs.existsSync(world.cleanupLog) && fs.readFileSync(world.cleanupLog).length > 0);
    return { cleaned_up, afterwards: await add(peer) };
  },

  async close(peer) {
    const { ended } = await begin(peer);
    await peer.close();
    await ended;
    return {};
  },
};

const add = (peer) => peer.call("add", { a: 2, b: 3 });

const code = (asked) => asked.then(() => null, (error) => error.code ?? String(error));

// A long call that runs: it has reported progress. In an object, so that awaiting this function does not await the call;
// `ended` resolves when the call has ended, however it did.
async function begin(peer, signal) {
  let ended;
  await new Promise((seen, failed) => {
    ended = peer.call("slow_cleanup", { ms: LONG }, { signal, seen }).catch(failed);
  });
  return { ended };
}

async function until(happened) {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    if (happened()) return true;
    await pause(25);
  }
  return false;
}

async function one(connect, check, revision, target) {
  const peer = await connect(revision, target);
  const seen = await checks[check](peer);
  await peer.close();
  return { revision: peer.revision, seen };
}

// Does the checks of the plan, a file that the command line names; a line of JSON for each.
export async function run(connect) {
  const plan = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
  for (const { name, target, cleanup_log } of plan.checks) {
    world = { cleanupLog: cleanup_log, questions: [], logs: [], updates: [] };
    const late = pause(LIMIT, undefined, { ref: false }).then(() => Promise.reject(new Error("not done in time")));
    const told = await Promise.race([one(connect, name, plan.revision, target), late]).catch((error) => ({
      error: error?.stack ?? String(error),
    }));
    console.log(JSON.stringify({ check: name, notes: [], ...told }));
  }
  // A check that was not done in time may hold something open.
  process.exit();
}

// What a client says that it can be asked.
export const capabilities = { elicitation: {}, sampling: {}, roots: {} };

export const isUrl = (target) => target.startsWith("http");
