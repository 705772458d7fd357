"""The Python SDK, first generation."""

import os
from contextlib import asynccontextmanager

import anyio
import mcp.types as types
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import checks


class Peer:
    def __init__(self, session, revision):
        self.session = session
        self.revision = revision
        self.calls = {}

    async def tools(self):
        return {tool.name: tool.inputSchema for tool in (await self.session.list_tools()).tools}

    async def call(self, name, arguments, seen=None, log=None):
        async def tell(progress, total, message):
            seen(progress, total)

        # The session numbers its requests and tells nobody, but whoever cancels has to name one.
        self.calls[name] = self.session._request_id
        result = await self.session.call_tool(name, arguments, progress_callback=seen and tell)
        return result.content[0].text, result.isError

    async def cancel(self, task):
        params = types.CancelledNotificationParams(requestId=self.calls["slow_cleanup"], reason="interop")
        await self.session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        task.cancel()

    def code(self, error):
        return error.error.code if isinstance(error, McpError) else None

    async def resources(self):
        resources = (await self.session.list_resources()).resources
        templates = (await self.session.list_resource_templates()).resourceTemplates
        return [str(resource.uri) for resource in resources], [template.uriTemplate for template in templates]

    async def read(self, uri):
        return (await self.session.read_resource(uri)).contents[0].text

    async def prompts(self):
        prompts = (await self.session.list_prompts()).prompts
        return {prompt.name: [(argument.name, argument.required) for argument in prompt.arguments] for prompt in prompts}

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, kind, name, argument, typed):
        if kind == "prompt":
            reference = types.PromptReference(type="ref/prompt", name=name)
        else:
            reference = types.ResourceTemplateReference(type="ref/resource", uri=name)
        return (await self.session.complete(reference, {"name": argument, "value": typed})).completion.values

    async def log_level(self, level):
        await self.session.set_logging_level(level)

    @asynccontextmanager
    async def subscribed(self, uri):
        await self.session.subscribe_resource(uri)
        yield
        await self.session.unsubscribe_resource(uri)


async def elicit(_context, params):
    action, content = checks.elicited(params.message, params.requestedSchema)
    return types.ElicitResult(action=action, content=content)


async def sample(_context, params):
    text = types.TextContent(type="text", text=checks.sampled(params.messages[0].content.text))
    return types.CreateMessageResult(role="assistant", content=text, model="interop")


async def roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri=checks.ROOT)])


async def log(params):
    checks.logged(params.level, params.data)


async def hear(message):
    if isinstance(message, types.ServerNotification) and isinstance(message.root, types.ResourceUpdatedNotification):
        checks.updated(message.root.params.uri)


@asynccontextmanager
async def connect(revision, target):
    # It offers its newest revision and has no setting for another.
    types.LATEST_PROTOCOL_VERSION = revision
    if checks.is_url(target):
        transport = streamable_http_client(target)
    else:
        transport = stdio_client(StdioServerParameters(command=target, env=dict(os.environ)))
    callbacks = {
        "elicitation_callback": elicit,
        "sampling_callback": sample,
        "list_roots_callback": roots,
        "logging_callback": log,
        "message_handler": hear,
    }
    peer = None
    try:
        async with transport as (read, write, *_), ClientSession(read, write, **callbacks) as session:
            agreed = await session.initialize()
            peer = Peer(session, agreed.protocolVersion)
            yield peer
    except* anyio.BrokenResourceError:
        # Its issue 1960: a message that the server sends while the client is closing makes the closing raise.
        if peer is None or peer.left is None:
            raise
        checks.note("the client raised BrokenResourceError while it closed (python-sdk issue 1960)")


checks.run(connect)
