use steadfast::{Context, JsonObject, Tool};

struct Place;

fn main() {
    Tool::new("not_async").handler(|arguments: JsonObject, _ctx: Context| arguments.len());
    Tool::new("no_deserialize").handler(|_place: Place| async {});
    Tool::new("bad_answer").handler(|| async { Place });
    Tool::new("order").handler(|_ctx: Context, _arguments: JsonObject| async {});
    Tool::new("async").blocking_handler(|_arguments: JsonObject| async { "x" });
}
