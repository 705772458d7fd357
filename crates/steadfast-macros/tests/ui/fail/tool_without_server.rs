use steadfast::tool;

struct Thing;

impl Thing {
    #[tool]
    async fn wait(&self) {}
}

fn main() {}
