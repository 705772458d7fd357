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

    async def call(self, name, arguments, seen=None):
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


async def roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri=checks.ROOT)])


@asynccontextmanager
async def connect(revision, target):
    # It offers its newest revision and has no setting for another.
    types.LATEST_PROTOCOL_VERSION = revision
    if checks.is_url(target):
        transport = streamable_http_client(target[0])
    else:
        transport = stdio_client(StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ)))
    peer = None
    try:
        async with transport as (read, write, *_), ClientSession(read, write, list_roots_callback=roots) as session:
            agreed = await session.initialize()
            peer = Peer(session, agreed.protocolVersion)
            yield peer
    except* anyio.BrokenResourceError:
        # Its issue 1960: a message that the server sends while the client is closing makes the closing raise.
        if peer is None or peer.left is None:
            raise
        checks.notes.append("the client raised BrokenResourceError while it closed (python-sdk issue 1960)")


checks.run(connect)
