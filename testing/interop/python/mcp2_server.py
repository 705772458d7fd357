"""A server of the Python SDK, second generation."""

import mcp.types as types
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged

import offers

server = Server("python-mcp-2", version="2.3.0", instructions="Be kind.")
bus = InMemorySubscriptionBus()

METHODS = {
    "tools/list": (types.PaginatedRequestParams, types.ListToolsResult),
    "tools/call": (types.CallToolRequestParams, types.CallToolResult),
    "resources/list": (types.PaginatedRequestParams, types.ListResourcesResult),
    "resources/templates/list": (types.PaginatedRequestParams, types.ListResourceTemplatesResult),
    "resources/read": (types.ReadResourceRequestParams, types.ReadResourceResult),
    "resources/subscribe": (types.SubscribeRequestParams, types.EmptyResult),
    "resources/unsubscribe": (types.UnsubscribeRequestParams, types.EmptyResult),
    "prompts/list": (types.PaginatedRequestParams, types.ListPromptsResult),
    "prompts/get": (types.GetPromptRequestParams, types.GetPromptResult),
    "completion/complete": (types.CompleteRequestParams, types.CompleteResult),
    "logging/setLevel": (types.SetLevelRequestParams, types.EmptyResult),
}

ASKED = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


class Peer:
    def __init__(self, context, params):
        self.context = context
        self.session = context.session
        modern = context.protocol_version >= "2026"
        self.answers = params.get("inputResponses", {}) if modern else None

    async def progress(self, done, total):
        await self.session.report_progress(done, total)

    async def log(self, level, data):
        await self.session.send_log_message(level, data, related_request_id=self.context.request_id)

    async def ask(self, method, params):
        asked, result = ASKED[method]
        metadata = ServerMessageMetadata(related_request_id=self.context.request_id)
        request = asked.model_validate({"method": method, "params": params})
        reply = await self.session.send_request(request, result, metadata=metadata)
        return reply.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def updated(self, uri):
        if self.answers is None:
            await self.session.send_resource_updated(uri)
        else:
            await bus.publish(ResourceUpdated(uri=uri))

    async def tools_changed(self):
        if self.answers is None:
            await self.session.send_tool_list_changed()
        else:
            await bus.publish(ToolsListChanged())


def answering(method, result):
    async def answer(context, params):
        params = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        try:
            return result.model_validate(await offers.answer(method, params, Peer(context, params)))
        except offers.Refused as refusal:
            raise MCPError(code=refusal.code, message=refusal.message) from refusal
        except offers.Asks as asks:
            return types.InputRequiredResult.model_validate({"inputRequests": asks.requests})

    return answer


for method, (params, result) in METHODS.items():
    server.add_request_handler(method, params, answering(method, result))
server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(bus))

_options = server.create_initialization_options


def options():
    """Left to itself it does not declare that lists change."""
    return _options(NotificationOptions(tools_changed=True, resources_changed=True, prompts_changed=True))


# Its HTTP asks the server itself for them.
server.create_initialization_options = options


offers.serve_official(server, server.streamable_http_app)
