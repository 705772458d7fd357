use steadfast::server;

struct Thing;

#[server]
impl Thing {
    #[tool]
    async fn exclusive(&mut self) {}

    #[tool]
    async fn owned(self) {}

    #[tool]
    async fn boxed(self: Box<Self>) {}
}

fn main() {}
