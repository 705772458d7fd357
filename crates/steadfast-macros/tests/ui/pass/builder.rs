//! Everything without macros.
use serde::Deserialize;
use steadfast::{Context, Error, JsonObject, Server, ServerTool};

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

async fn subtract(Add { a, b }: Add, _ctx: Context) -> Result<i64, Error> {
    a.checked_sub(b).ok_or_else(|| Error::invalid_params("too small"))
}

fn main() {
    let offset = 7;
    Server::builder("calculator", "1.0.0")
        .tool(ServerTool::new("add").handler(move |Add { a, b }: Add| async move { a + b + offset }))
        .tool(ServerTool::new("subtract").handler(subtract))
        .tool(ServerTool::new("keys").blocking_handler(|all: JsonObject| all.len()))
        .tool(ServerTool::new("context").handler(|ctx: Context| async move { drop(ctx) }))
        .tool(ServerTool::new("ready").handler(async || "yes"))
        .build();
}
