use steadfast::{Context, JsonObject, ServerTool};

struct Place;

fn main() {
    ServerTool::new("not_async").handler(|arguments: JsonObject, _ctx: Context| arguments.len());
    ServerTool::new("no_deserialize").handler(|_place: Place| async {});
    ServerTool::new("bad_answer").handler(|| async { Place });
    ServerTool::new("order").handler(|_ctx: Context, _arguments: JsonObject| async {});
    ServerTool::new("async").blocking_handler(|_arguments: JsonObject| async { "x" });
}
