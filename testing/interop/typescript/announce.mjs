// Loaded before a server: says where it listens. Ports are chosen by the system, and not every server tells which.

import net from "node:net";

const emit = net.Server.prototype.emit;

net.Server.prototype.emit = function (event, ...rest) {
  if (event === "listening") {
    const path = process.argv.at(-1) === "sse" ? "sse" : "mcp";
    console.error(`listening on http://127.0.0.1:${this.address().port}/${path}`);
  }
  return emit.call(this, event, ...rest);
};
