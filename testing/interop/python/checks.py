"""What each check does, told to a client through the few words that all of them have.

A check reports what it saw and never judges it: the driver does. A client script gives `run` a way to connect, which
yields a peer:

    revision                                the revision that was agreed on
    await tools()                           {name: input schema}
    await call(name, arguments, seen, log)  (text, is_error); seen(progress, total), if given, is told of progress; log is
                                            the level of log messages that this call asks for, where calls do (2026-07-28)
    await cancel(task)                      gives up the call that this task waits for, as users of that client do
    code(error)                             the JSON-RPC code of what a call raised, None if it has none
    await resources()                       (URIs, URI templates)
    await read(uri)                         the text of a resource
    await prompts()                         {name: [(argument, required)]}
    await prompt(name, arguments)           the text of its first message
    await complete(kind, name, argument, typed)    values; the kind is "prompt" or "resource"
    await log_level(level)                  asks for log messages, where connections do (up to 2025-11-25)
    subscribed(uri)                         asynchronous context in which changes of a resource are told to `updated`

The functions `elicited`, `sampled`, `logged` and `updated` are for the client's callbacks, to say what it was asked and told
and to learn what to answer. A fault of the client itself that the check can live with goes to `notes`, which the driver
prints beside the verdict.
"""

import asyncio
import json
import pathlib
import sys
import traceback

LONG = 60_000
AT_ONCE = 32
ROOT = "file:///interop"
COUNTER = "steadfast://counter"
LIMIT = 30


class World:
    """What happens besides the answers of one check."""

    def __init__(self, cleanup_log):
        self.cleanup_log = pathlib.Path(cleanup_log)
        self.notes = []
        self.questions = []
        self.logs = []
        self.updates = []


world = None


def note(text):
    world.notes.append(text)


def elicited(message, schema):
    """The first question is answered, the second is declined: (action, content)."""
    world.questions.append([message, sorted(schema["properties"])])
    return ("accept", {"name": "Ada", "manner": "formal"}) if len(world.questions) == 1 else ("decline", None)


def sampled(text):
    world.questions.append(text)
    return "Paris"


def logged(level, data):
    world.logs.append([level, data])


def updated(uri):
    world.updates.append(str(uri))


async def list_tools(peer):
    tools = await peer.tools()
    return {"tools": sorted(tools), "add": sorted(tools["add"]["properties"])}


async def call(peer):
    return {"add": await add(peer), "echo": await peer.call("echo", {"text": "héllo\n\u2028 𝄞"})}


async def large(peer):
    # Less than a mebibyte: some clients read no longer event of a stream.
    text, is_error = await peer.call("blob", {"bytes": 1 << 19})
    return {"length": len(text), "is_error": is_error}


async def errors(peer):
    _, is_error = await peer.call("add", {"a": "two", "b": 3})
    codes = {tool: await code(peer, peer.call(tool, {})) for tool in ["no_such_tool", "panic"]}
    return {"bad_arguments": is_error, "codes": codes, "afterwards": await add(peer)}


async def print_(peer):
    return {"printed": await peer.call("print", {"text": '{"jsonrpc":"2.0"}'}), "add": await add(peer)}


async def progress(peer):
    steps = []
    text, _ = await peer.call("progress", {"steps": 4, "ms": 200}, lambda *step: steps.append(step))
    return {"text": text, "steps": steps}


async def concurrent(peer):
    answers = await asyncio.gather(*(peer.call("echo", {"text": f"call {n}"}) for n in range(AT_ONCE)))
    return {"answers": answers}


async def resources(peer):
    uris, templates = await peer.resources()
    texts = {uri: await peer.read(uri) for uri in [COUNTER, "steadfast://laws/L8"]}
    # Two codes mean the same, by revision, and some clients say one for the other.
    not_found = await code(peer, peer.read("steadfast://laws/L99")) in [-32002, -32602]
    return {"resources": sorted(uris), "templates": sorted(templates), "texts": texts, "not_found": not_found}


async def prompts(peer):
    arguments = {"law": "L8", "audience": "a child"}
    return {
        "prompts": await peer.prompts(),
        "text": await peer.prompt("explain_law", arguments),
        "refused": await code(peer, peer.prompt("no_such_prompt", {})) == -32602,
    }


async def complete(peer):
    return {
        "law": await peer.complete("prompt", "explain_law", "law", "l1"),
        "audience": await peer.complete("prompt", "explain_law", "audience", "a c"),
        "template": await peer.complete("resource", "steadfast://laws/{law}", "law", "L1"),
    }


async def log(peer):
    if peer.revision < "2026":
        await peer.log_level("warning")
    answer = await peer.call("log", {"text": "careful"}, log="warning")
    await until(lambda: len(world.logs) >= 2)
    return {"answer": answer, "logs": world.logs}


async def subscribe(peer):
    async with peer.subscribed(COUNTER):
        before = await peer.read(COUNTER)
        await peer.call("count", {})
        await until(lambda: world.updates)
        after = await peer.read(COUNTER)
    # No subscription is left: this change must not be reported.
    await peer.call("count", {})
    return {"before": before, "after": after, "at_the_end": await peer.read(COUNTER), "updates": world.updates}


async def elicit(peer):
    accepted = await peer.call("ask_user", {})
    declined = await peer.call("ask_user", {})
    return {"questions": world.questions, "accepted": accepted, "declined": declined}


async def sample(peer):
    answer = await peer.call("ask_model", {"question": "What is the capital of France?"})
    return {"questions": world.questions, "answer": answer}


async def roots(peer):
    return {"roots": await peer.call("ask_roots", {})}


async def release(peer):
    return {"answer": await peer.call("release_connection", {"ms": 200}), "afterwards": await add(peer)}


async def cancel(peer):
    task = await begin(peer)
    await peer.cancel(task)
    # The connection is still open: the line is there because of the cancellation, not because of its end.
    cleaned_up = await until(lambda: world.cleanup_log.exists() and world.cleanup_log.read_text())
    return {"cleaned_up": cleaned_up, "afterwards": await add(peer)}


async def close(peer):
    peer.left = await begin(peer)
    return {}


CHECKS = {
    "list": list_tools,
    "call": call,
    "large": large,
    "errors": errors,
    "print": print_,
    "concurrent": concurrent,
    "progress": progress,
    "log": log,
    "resources": resources,
    "subscribe": subscribe,
    "prompts": prompts,
    "complete": complete,
    "elicit": elicit,
    "sample": sample,
    "roots": roots,
    # Its connection is cut between the second step and the third.
    "resume": progress,
    "release": release,
    "cancel": cancel,
    "close": close,
}


async def add(peer):
    return await peer.call("add", {"a": 2, "b": 3})


async def code(peer, asked):
    try:
        await asked
    except Exception as error:
        return peer.code(error)
    return None


async def begin(peer):
    """A long call that runs: it has reported progress."""
    running = asyncio.Event()
    task = asyncio.create_task(peer.call("slow_cleanup", {"ms": LONG}, lambda *_: running.set()))
    await running.wait()
    return task


async def until(happened):
    for _ in range(200):
        if happened():
            return True
        await asyncio.sleep(0.025)
    return False


async def one(connect, check, revision, target):
    async with asyncio.timeout(LIMIT):
        async with connect(revision, target) as peer:
            peer.left = None
            seen = await CHECKS[check](peer)
            agreed = peer.revision
        if peer.left is not None:
            # How a client ends its own calls is its own affair; that this one does not outlive the check is ours.
            peer.left.cancel()
            await asyncio.wait([peer.left], timeout=10)
    return {"revision": agreed, "seen": seen}


def run(connect):
    """Does the checks of the plan, a file that the command line names; a line of JSON for each."""
    global world
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for check in plan["checks"]:
        world = World(check["cleanup_log"])
        try:
            told = asyncio.run(one(connect, check["name"], plan["revision"], check["target"]))
        except BaseException:
            told = {"error": traceback.format_exc()}
        print(json.dumps({"check": check["name"], "notes": world.notes, **told}), flush=True)


def is_url(target):
    return target.startswith("http")
