"""What each check does, told to a client through the few words that all of them have.

A check reports what it saw and never judges it: the driver does. A client script gives `run` a way to connect, which
yields a peer:

    revision                             the revision that was agreed on
    await tools()                        {name: input schema}
    await call(name, arguments, seen)    (text, is_error); seen(progress, total), if given, is told of progress
    await cancel(task)                   gives up the call that this task waits for, as users of that client do
    code(error)                          the JSON-RPC code of what a call raised, None if it has none

A fault of the client itself that the check can live with goes to `notes`, which the driver prints beside the verdict.
"""

import asyncio
import json
import os
import pathlib
import sys

LONG = 60_000
AT_ONCE = 32
ROOT = "file:///interop"

notes = []


async def list_tools(peer):
    tools = await peer.tools()
    return {"tools": sorted(tools), "add": sorted(tools["add"]["properties"])}


async def call(peer):
    return {"add": await peer.call("add", {"a": 2, "b": 3}), "echo": await peer.call("echo", {"text": "héllo\n\u2028 𝄞"})}


async def large(peer):
    text, is_error = await peer.call("blob", {"bytes": 1 << 20})
    return {"length": len(text), "is_error": is_error}


async def errors(peer):
    _, is_error = await peer.call("add", {"a": "two", "b": 3})
    codes = {}
    for tool in ["no_such_tool", "panic"]:
        try:
            await peer.call(tool, {})
            codes[tool] = None
        except Exception as error:
            codes[tool] = peer.code(error)
    return {"bad_arguments": is_error, "codes": codes, "afterwards": await peer.call("add", {"a": 2, "b": 3})}


async def print_(peer):
    return {"printed": await peer.call("print", {"text": '{"jsonrpc":"2.0"}'}), "add": await peer.call("add", {"a": 2, "b": 3})}


async def progress(peer):
    steps = []
    text, _ = await peer.call("progress", {"steps": 4, "ms": 50}, lambda *step: steps.append(step))
    return {"text": text, "steps": steps}


async def concurrent(peer):
    answers = await asyncio.gather(*(peer.call("echo", {"text": f"call {n}"}) for n in range(AT_ONCE)))
    return {"answers": answers}


async def roots(peer):
    return {"roots": await peer.call("ask_roots", {})}


async def cancel(peer):
    task = await begin(peer)
    await peer.cancel(task)
    # The connection is still open: the line is there because of the cancellation, not because of its end.
    return {"cleaned_up": await cleaned_up(), "afterwards": await peer.call("add", {"a": 2, "b": 3})}


async def close(peer):
    peer.left = await begin(peer)
    return {}


CHECKS = {
    "list": list_tools,
    "call": call,
    "large": large,
    "errors": errors,
    "print": print_,
    "progress": progress,
    "concurrent": concurrent,
    "roots": roots,
    "cancel": cancel,
    "close": close,
}


async def begin(peer):
    """A long call that runs: it has reported progress."""
    running = asyncio.Event()
    task = asyncio.create_task(peer.call("slow_cleanup", {"ms": LONG}, lambda *_: running.set()))
    await running.wait()
    return task


async def cleaned_up():
    log = pathlib.Path(os.environ["CLEANUP_LOG"])
    for _ in range(100):
        if log.exists() and log.read_text():
            return True
        await asyncio.sleep(0.05)
    return False


def run(connect):
    check, revision, *target = sys.argv[1:]

    async def main():
        async with connect(revision, target) as peer:
            peer.left = None
            seen = await CHECKS[check](peer)
            agreed = peer.revision
        if peer.left is not None:
            # How a client ends its own calls is its own affair; that this one does not outlive the check is ours.
            peer.left.cancel()
            await asyncio.wait([peer.left], timeout=10)
        return {"revision": agreed, "seen": seen, "notes": notes}

    print(json.dumps(asyncio.run(main())))


def is_url(target):
    return len(target) == 1 and target[0].startswith("http")
