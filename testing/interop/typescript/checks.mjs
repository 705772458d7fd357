// What each check does, told to a client through the few words that all of them have.
//
// A check reports what it saw and never judges it: the driver does. A client script gives `run` a way to connect, which
// resolves to a peer:
//
//   revision                             the revision that was agreed on
//   tools()                              {name: input schema}
//   call(name, arguments, options)       [text, isError]; options: {signal, seen}; seen(progress, total) is told of progress
//   close()                              ends the connection as users of that client do

import fs from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

export const ROOT = "file:///interop";
const LONG = 60_000;
const AT_ONCE = 32;

const checks = {
  async list(peer) {
    const tools = await peer.tools();
    return { tools: Object.keys(tools).sort(), add: Object.keys(tools.add.properties).sort() };
  },

  async call(peer) {
    return { add: await add(peer), echo: await peer.call("echo", { text: "héllo\n\u2028 𝄞" }) };
  },

  async large(peer) {
    const [text, is_error] = await peer.call("blob", { bytes: 1 << 20 });
    return { length: text.length, is_error };
  },

  async errors(peer) {
    const [, bad_arguments] = await peer.call("add", { a: "two", b: 3 });
    const codes = {};
    for (const tool of ["no_such_tool", "panic"]) {
      codes[tool] = await peer.call(tool, {}).then(() => null, (error) => error.code ?? String(error));
    }
    return { bad_arguments, codes, afterwards: await add(peer) };
  },

  async print(peer) {
    return { printed: await peer.call("print", { text: '{"jsonrpc":"2.0"}' }), add: await add(peer) };
  },

  async progress(peer) {
    const steps = [];
    const [text] = await peer.call("progress", { steps: 4, ms: 50 }, { seen: (...step) => steps.push(step) });
    return { text, steps };
  },

  async concurrent(peer) {
    const one = (_, n) => peer.call("echo", { text: `call ${n}` });
    return { answers: await Promise.all(Array.from({ length: AT_ONCE }, one)) };
  },

  async roots(peer) {
    return { roots: await peer.call("ask_roots", {}) };
  },

  async cancel(peer) {
    const giveUp = new AbortController();
    const { ended } = await begin(peer, giveUp.signal);
    giveUp.abort("interop");
    await ended;
    // The connection is still open: the line is there because of the cancellation, not because of its end.
    return { cleaned_up: await cleanedUp(), afterwards: await add(peer) };
  },

  async close(peer) {
    const { ended } = await begin(peer);
    await peer.close();
    await ended;
    return {};
  },
};

const add = (peer) => peer.call("add", { a: 2, b: 3 });

// A long call that runs: it has reported progress. In an object, so that awaiting this function does not await the call;
// `ended` resolves when the call has ended, however it did.
async function begin(peer, signal) {
  let ended;
  await new Promise((seen, failed) => {
    ended = peer.call("slow_cleanup", { ms: LONG }, { signal, seen }).catch(failed);
  });
  return { ended };
}

async function cleanedUp() {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    if (fs.existsSync(process.env.CLEANUP_LOG) && fs.readFileSync(process.env.CLEANUP_LOG).length > 0) return true;
    await pause(50);
  }
  return false;
}

export async function run(connect) {
  const [check, revision, ...target] = process.argv.slice(2);
  const peer = await connect(revision, target);
  const seen = await checks[check](peer);
  await peer.close();
  console.log(JSON.stringify({ revision: peer.revision, seen, notes: [] }));
}

export const isUrl = (target) => target.length === 1 && target[0].startsWith("http");
