use steadfast::server;

struct Thing;

#[server]
impl Thing {
    #[tool]
    async fn add(a: i64, b: i64) -> i64 {
        a + b
    }
}

fn main() {}
