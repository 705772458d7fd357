use steadfast::{server, tool};

struct Thing;

#[server]
impl Thing {
    #[tool]
    async fn wait(&self) {}

    #[tool(name = "wait")]
    async fn wait_longer(&self) {}

    #[tool(name = "wait a moment")]
    async fn wait_shorter(&self) {}
}

#[tool]
async fn twice(a: u8, #[arg(rename = "a")] b: u8) -> u8 {
    a + b
}

fn main() {}
