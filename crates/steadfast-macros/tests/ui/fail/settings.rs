use steadfast::{Context, prompt, resource, tool};

async fn days(_ctx: Context) -> Result<(), steadfast::ToolError> {
    Ok(())
}

#[tool(ask_first = days)]
async fn not_a_task() {}

#[tool(task = optional, ask_first)]
async fn asks_nothing() {}

#[prompt(needs = feet)]
async fn walk() -> String {
    String::new()
}

#[resource("note://{name}", size = 7)]
async fn of_many_sizes(name: String) -> String {
    name
}

#[resource("note://all", cache)]
async fn kept() -> String {
    String::new()
}

#[resource("note://all", size = 7, size = 8)]
async fn twice() -> String {
    String::new()
}

#[resource("note://all", needs(roots, feet))]
async fn walked() -> String {
    String::new()
}

fn main() {}
