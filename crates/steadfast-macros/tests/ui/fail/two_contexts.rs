use steadfast::{Context, tool};

#[tool]
async fn twice(first: Context, text: String, second: Context) -> String {
    drop((first, second));
    text
}

fn main() {}
