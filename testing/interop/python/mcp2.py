"""The Python SDK, second generation."""

import os
from contextlib import asynccontextmanager

import mcp.client.session
import mcp.types as types
from mcp import Client, MCPError, StdioServerParameters

import checks


class Peer:
    def __init__(self, client):
        self.client = client
        self.revision = client.protocol_version

    async def tools(self):
        return {tool.name: tool.input_schema for tool in (await self.client.list_tools()).tools}

    async def call(self, name, arguments, seen=None):
        async def tell(progress, total, message):
            seen(progress, total)

        result = await self.client.call_tool(name, arguments, progress_callback=seen and tell)
        return result.content[0].text, bool(result.is_error)

    async def cancel(self, task):
        task.cancel()

    def code(self, error):
        return error.code if isinstance(error, MCPError) else None


async def roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri=checks.ROOT)])


@asynccontextmanager
async def connect(revision, target):
    modern = revision >= "2026"
    if not modern:
        # It offers its newest revision and has no setting for another.
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    if checks.is_url(target):
        server = target[0]
    else:
        server = StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
    async with Client(server, mode="auto" if modern else "legacy", list_roots_callback=roots) as client:
        yield Peer(client)


checks.run(connect)
