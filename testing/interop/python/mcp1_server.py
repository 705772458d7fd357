"""A server of the Python SDK, first generation."""

import contextlib

import mcp.types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import McpError
from mcp.shared.message import ServerMessageMetadata
from starlette.applications import Starlette
from starlette.routing import Route

import offers

server = Server("python-mcp-1", "1.27.2", instructions="Be kind.")

RESULTS = {
    types.ListToolsRequest: types.ListToolsResult,
    types.CallToolRequest: types.CallToolResult,
    types.ListResourcesRequest: types.ListResourcesResult,
    types.ListResourceTemplatesRequest: types.ListResourceTemplatesResult,
    types.ReadResourceRequest: types.ReadResourceResult,
    types.SubscribeRequest: types.EmptyResult,
    types.UnsubscribeRequest: types.EmptyResult,
    types.ListPromptsRequest: types.ListPromptsResult,
    types.GetPromptRequest: types.GetPromptResult,
    types.CompleteRequest: types.CompleteResult,
    types.SetLevelRequest: types.EmptyResult,
}

ASKED = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}


class Peer:
    answers = None

    def __init__(self, context):
        self.context = context
        self.session = context.session

    async def progress(self, done, total):
        token = self.context.meta and self.context.meta.progressToken
        if token is not None:
            await self.session.send_progress_notification(
                token, done, total, related_request_id=str(self.context.request_id)
            )

    async def log(self, level, data):
        await self.session.send_log_message(level, data, related_request_id=self.context.request_id)

    async def ask(self, method, params):
        request = types.ServerRequest.model_validate({"method": method, "params": params})
        metadata = ServerMessageMetadata(related_request_id=self.context.request_id)
        reply = await self.session.send_request(request, ASKED[method], metadata=metadata)
        return reply.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def updated(self, uri):
        await self.session.send_resource_updated(uri)

    async def tools_changed(self):
        await self.session.send_tool_list_changed()


def answering(result):
    async def answer(request):
        params = request.params and request.params.model_dump(mode="json", by_alias=True, exclude_none=True)
        try:
            answer = await offers.answer(request.method, params, Peer(server.request_context))
        except offers.Refused as refusal:
            raise McpError(types.ErrorData(code=refusal.code, message=refusal.message)) from refusal
        return types.ServerResult(result.model_validate(answer))

    return answer


for request, result in RESULTS.items():
    server.request_handlers[request] = answering(result)

_options = server.create_initialization_options


def options():
    """Left to itself it declares neither changes of lists nor subscriptions, whatever it has handlers for."""
    declared = _options(NotificationOptions(tools_changed=True, resources_changed=True, prompts_changed=True))
    declared.capabilities.resources.subscribe = True
    return declared


# Its HTTP asks the server itself for them.
server.create_initialization_options = options


def http():
    manager = StreamableHTTPSessionManager(server)

    @contextlib.asynccontextmanager
    async def lifespan(_app):
        async with manager.run():
            yield

    class Endpoint:
        async def __call__(self, scope, receive, send):
            await manager.handle_request(scope, receive, send)

    return Starlette(routes=[Route("/mcp", Endpoint())], lifespan=lifespan)


offers.serve_official(server, http)
