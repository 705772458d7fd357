"""FastMCP's client."""

import os
from contextlib import asynccontextmanager

import mcp.client.session
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp import MCPError

import checks


class Peer:
    def __init__(self, client):
        self.client = client
        self.revision = client.protocol_version

    async def tools(self):
        return {tool.name: tool.input_schema for tool in await self.client.list_tools()}

    async def call(self, name, arguments, seen=None):
        async def tell(progress, total, message):
            seen(progress, total)

        result = await self.client.call_tool_mcp(name, arguments, progress_handler=seen and tell)
        return result.content[0].text, bool(result.is_error)

    async def cancel(self, task):
        task.cancel()

    def code(self, error):
        return error.code if isinstance(error, MCPError) else None


@asynccontextmanager
async def connect(revision, target):
    modern = revision >= "2026"
    if not modern:
        # The SDK below it offers its newest revision and has no setting for another.
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    if checks.is_url(target):
        server = target[0]
    else:
        server = StdioTransport(target[0], target[1:], env=dict(os.environ), keep_alive=False)
    async with Client(server, mode="auto" if modern else "legacy", roots=[checks.ROOT]) as client:
        yield Peer(client)


checks.run(connect)
