"""FastMCP's client."""

import asyncio
import os
from contextlib import asynccontextmanager

import mcp.client.session
import mcp.types as types
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from mcp import MCPError
from mcp.client.subscriptions import listen

import checks

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


class Peer:
    def __init__(self, client):
        self.client = client
        self.revision = client.protocol_version

    async def tools(self):
        return {tool.name: tool.input_schema for tool in await self.client.list_tools()}

    async def call(self, name, arguments, seen=None, log=None):
        async def tell(progress, total, message):
            seen(progress, total)

        meta = {LOG_LEVEL: log} if log and self.revision >= "2026" else None
        result = await self.client.call_tool_mcp(name, arguments, progress_handler=seen and tell, meta=meta)
        return result.content[0].text, bool(result.is_error)

    async def cancel(self, task):
        task.cancel()

    def code(self, error):
        return error.code if isinstance(error, MCPError) else None

    async def resources(self):
        resources = await self.client.list_resources()
        templates = await self.client.list_resource_templates()
        return [str(resource.uri) for resource in resources], [template.uri_template for template in templates]

    async def read(self, uri):
        return (await self.client.read_resource(uri))[0].text

    async def prompts(self):
        prompts = await self.client.list_prompts()
        return {prompt.name: [(argument.name, argument.required) for argument in prompt.arguments] for prompt in prompts}

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, kind, name, argument, typed):
        if kind == "prompt":
            reference = types.PromptReference(type="ref/prompt", name=name)
        else:
            reference = types.ResourceTemplateReference(type="ref/resource", uri=name)
        return (await self.client.complete(reference, {"name": argument, "value": typed})).values

    async def log_level(self, level):
        await self.client.set_logging_level(level)

    # It has no words of its own for subscriptions, and offers the session below it.
    @asynccontextmanager
    async def subscribed(self, uri):
        if self.revision < "2026":
            await self.client.session.subscribe_resource(uri)
            yield
            await self.client.session.unsubscribe_resource(uri)
            return
        async with listen(self.client.session, resource_subscriptions=[uri]) as subscription:
            hearing = asyncio.create_task(hear_all(subscription))
            yield
            hearing.cancel()


async def hear_all(subscription):
    async for event in subscription:
        checks.updated(event.uri)


async def elicit(message, _type, params, _context):
    action, content = checks.elicited(message, params.requested_schema)
    return ElicitResult(action=action, content=content)


async def sample(messages, _params, _context):
    return checks.sampled(messages[0].content.text)


async def log(message):
    checks.logged(message.level, message.data)


async def hear(message):
    if isinstance(message, types.ResourceUpdatedNotification):
        checks.updated(message.params.uri)


@asynccontextmanager
async def connect(revision, target):
    modern = revision >= "2026"
    if not modern:
        # The SDK below it offers its newest revision and has no setting for another.
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    if checks.is_url(target):
        server = target
    else:
        server = StdioTransport(target, [], env=dict(os.environ), keep_alive=False)
    client = Client(
        server,
        mode="auto" if modern else "legacy",
        elicitation_handler=elicit,
        sampling_handler=sample,
        roots=[checks.ROOT],
        log_handler=log,
        # A subscription of 2026-07-28 is heard where it was made.
        message_handler=None if modern else hear,
    )
    async with client:
        yield Peer(client)


checks.run(connect)
