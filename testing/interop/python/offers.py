"""What the servers offer, whichever SDK serves it: an answer to each method, as the JSON of its result.

A script gives every request a peer: who is asked, told and notified in the words of its SDK.
"""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path

OFFERS = json.loads(Path(__file__).with_name("offers.json").read_text())
PAGE = 4
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

state = {"counter": 0, "level": "debug", "tools": list(OFFERS["tools"])}


class Refused(Exception):
    """A protocol error."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


class Asks(Exception):
    """The question that comes in place of a result."""

    def __init__(self, requests):
        super().__init__("input required")
        self.requests = requests


async def answer(method, params, peer):
    return await METHODS[method](params or {}, peer)


async def list_tools(params, _peer):
    begin = int(params.get("cursor") or 0)
    page = {"tools": state["tools"][begin : begin + PAGE]}
    if begin + PAGE < len(state["tools"]):
        page["nextCursor"] = str(begin + PAGE)
    return page


async def call_tool(params, peer):
    tool = TOOLS.get(params["name"])
    if tool is None:
        raise Refused(-32602, f"there is no tool {params['name']}")
    return await tool(params.get("arguments") or {}, peer)


async def list_resources(_params, _peer):
    return {"resources": OFFERS["resources"]}


async def list_templates(_params, _peer):
    return {"resourceTemplates": OFFERS["resourceTemplates"]}


async def read_resource(params, _peer):
    uri = str(params["uri"])
    text = resource(uri)
    if text is None:
        raise Refused(-32002, f"there is no resource {uri}")
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}


def resource(uri):
    if uri == "interop://counter":
        return str(state["counter"])
    greeted = uri.removeprefix("interop://greetings/")
    return f"Hello, {greeted}!" if greeted != uri else None


async def list_prompts(_params, _peer):
    return {"prompts": OFFERS["prompts"]}


async def get_prompt(params, _peer):
    if params["name"] != "explain":
        raise Refused(-32602, f"there is no prompt {params['name']}")
    text = explained(**params.get("arguments") or {})
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def explained(topic, audience="anyone"):
    return f"Explain {topic} to {audience}."


async def complete(params, _peer):
    return {"completion": {"values": completed(params["argument"]["name"], params["argument"]["value"])}}


def completed(name, typed):
    return [value for value in OFFERS["completions"].get(name, []) if value.startswith(typed)]


async def set_level(params, _peer):
    state["level"] = params["level"]
    return {}


async def nothing(_params, _peer):
    return {}


METHODS = {
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "resources/subscribe": nothing,
    "resources/unsubscribe": nothing,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "completion/complete": complete,
    "logging/setLevel": set_level,
}


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


async def add(arguments, _peer):
    return text(str(arguments["a"] + arguments["b"]))


async def measure(arguments, _peer):
    measured = {"characters": len(arguments["text"]), "words": len(arguments["text"].split())}
    return text(json.dumps(measured), structuredContent=measured)


async def fail(_arguments, _peer):
    return text("it failed on purpose", isError=True)


async def progress(arguments, peer):
    for step in range(arguments["steps"]):
        await peer.progress(step + 1, arguments["steps"])
    return text(f"{arguments['steps']} steps")


async def wait(_arguments, peer):
    await peer.progress(1, 2)
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        with open(os.environ["CLEANUP_LOG"], "a") as log:
            log.write("stopped\n")
        raise
    return text("waited")


async def log(_arguments, peer):
    for level in LEVELS[:5]:
        # Since 2026-07-28 the request says how much it wants to hear, and the SDK heeds it.
        if peer.answers is not None or LEVELS.index(level) >= LEVELS.index(state["level"]):
            await peer.log(level, f"careful: {level}")
    return text("logged")


async def greet(_arguments, peer):
    reply = await ask(peer, "elicitation/create", OFFERS["form"])
    if reply["action"] != "accept":
        return text(reply["action"])
    return text(json.dumps(reply["content"], sort_keys=True))


async def consult(_arguments, peer):
    reply = await ask(peer, "sampling/createMessage", OFFERS["sampling"])
    return text(reply["content"]["text"])


async def look(_arguments, peer):
    reply = await ask(peer, "roots/list", {})
    return text(" ".join(root["uri"] for root in reply["roots"]))


async def ask(peer, method, params):
    """Up to 2025-11-25 a request to the client; since then a question in place of the result."""
    if peer.answers is None:
        return await peer.ask(method, params)
    if method not in peer.answers:
        raise Asks({method: {"method": method, "params": params}})
    return peer.answers[method]


async def touch(_arguments, peer):
    state["counter"] += 1
    await peer.updated("interop://counter")
    return text("touched")


async def grow(_arguments, peer):
    if OFFERS["grown"] not in state["tools"]:
        state["tools"].append(OFFERS["grown"])
    await peer.tools_changed()
    return text("grown")


TOOLS = {
    tool.__name__: tool for tool in [add, measure, fail, progress, wait, log, greet, consult, look, touch, grow]
}


def serve(stdio, apps):
    """By the word on the command line: on standard input and output, or over HTTP on a port that the system chooses."""
    way = sys.argv[1]
    if way == "stdio":
        stdio()
        return
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    path = "sse" if way == "sse" else "mcp"
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/{path}", file=sys.stderr, flush=True)
    config = uvicorn.Config(apps[way](), log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


def serve_official(server, http):
    """The official SDK has the same words for the other two transports in both generations."""
    from mcp.server.sse import SseServerTransport
    from mcp.server.stdio import stdio_server
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    def stdio():
        async def run():
            async with stdio_server() as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())

        asyncio.run(run())

    def sse():
        transport = SseServerTransport("/messages/")

        async def listen(request):
            async with transport.connect_sse(request.scope, request.receive, request._send) as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
            return Response()

        return Starlette(routes=[Route("/sse", listen), Mount("/messages/", app=transport.handle_post_message)])

    serve(stdio, {"http": http, "sse": sse})
