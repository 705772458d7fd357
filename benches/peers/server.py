"""The Python SDK as a peer of the stdio bench: the low-level server, with the tools that the reference server has.

`cargo xtask bench` installs the package `mcp` for it; the version is pinned in `xtask/src/bench/peers.rs`.
"""

import anyio
import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

server = Server("bench-peer", version="0")


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    return [
        types.Tool(
            name="add",
            description="Adds two integers.",
            inputSchema={
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        ),
        types.Tool(
            name="blob",
            description="Answers with so many bytes of text.",
            inputSchema={
                "type": "object",
                "properties": {"bytes": {"type": "integer", "minimum": 0, "default": 65536}},
            },
        ),
    ]


@server.call_tool()
async def call_tool(name: str, arguments: dict) -> list[types.TextContent]:
    if name == "add":
        return [types.TextContent(type="text", text=str(arguments["a"] + arguments["b"]))]
    if name == "blob":
        return [types.TextContent(type="text", text="x" * arguments.get("bytes", 65536))]
    raise ValueError(f"unknown tool: {name}")


async def main() -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


anyio.run(main)
