use steadfast::server;

struct Thing;

#[server]
impl Thing {
    #[tool]
    async fn show<T: ToString>(&self, value: T) -> String {
        value.to_string()
    }
}

fn main() {}
