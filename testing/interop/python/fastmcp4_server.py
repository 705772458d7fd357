"""A server of FastMCP, fourth generation: its own tools, resources and prompts, with what the others offer inside."""

import mcp.types as types
from fastmcp import FastMCP
from fastmcp.server.dependencies import get_context
from fastmcp.tools import Tool
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp.shared.message import ServerMessageMetadata

import offers

server = FastMCP("fastmcp-4", version="4.1.4", instructions="Be kind.", list_page_size=offers.PAGE)

ASKED = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


class Peer:
    def __init__(self, context):
        self.context = context
        modern = context.session.protocol_version >= "2026"
        self.answers = replies(context.input_responses) if modern else None

    async def progress(self, done, total):
        await self.context.report_progress(done, total)

    async def log(self, level, data):
        await self.context.log(data, level=level)

    async def ask(self, method, params):
        asked, result = ASKED[method]
        metadata = ServerMessageMetadata(related_request_id=self.context.request_id)
        request = asked.model_validate({"method": method, "params": params})
        reply = await self.context.session.send_request(request, result, metadata=metadata)
        return plain(reply)

    async def updated(self, uri):
        await self.context.send_notification(types.ResourceUpdatedNotification(params={"uri": uri}))

    async def tools_changed(self):
        server.add_tool(offered(offers.OFFERS["grown"]))
        await self.context.send_notification(types.ToolListChangedNotification())


def replies(responses):
    return {key: plain(response) for key, response in (responses or {}).items()}


def plain(model):
    return model if isinstance(model, dict) else model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Offered(Tool):
    async def run(self, arguments):
        try:
            params = {"name": self.name, "arguments": arguments}
            answer = await offers.answer("tools/call", params, Peer(get_context()))
        except offers.Asks as asks:
            asked = types.InputRequiredResult.model_validate({"inputRequests": asks.requests})
            return InputRequiredToolResult(asked)
        result = types.CallToolResult.model_validate(answer)
        return ToolResult(result.content, result.structured_content, is_error=bool(result.is_error))


def offered(tool):
    return Offered(
        name=tool["name"],
        description=tool["description"],
        parameters=tool["inputSchema"],
        output_schema=tool.get("outputSchema"),
    )


for tool in offers.OFFERS["tools"]:
    server.add_tool(offered(tool))


@server.resource("interop://counter", name="counter", mime_type="text/plain")
def counter() -> str:
    return offers.resource("interop://counter")


@server.resource("interop://greetings/{name}", name="greeting", mime_type="text/plain")
def greeting(name: str) -> str:
    return offers.resource(f"interop://greetings/{name}")


@server.prompt
def explain(topic: str, audience: str = "anyone") -> str:
    return offers.explained(topic, audience)


@server.completion
def complete(_reference, argument, _context):
    return offers.completed(argument.name, argument.value)


def stdio():
    server.run("stdio", show_banner=False)


offers.serve(stdio, {"http": server.http_app, "sse": lambda: server.http_app(path="/sse", transport="sse")})
