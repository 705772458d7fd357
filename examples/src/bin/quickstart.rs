//! A whole server, on standard input and output. An MCP client starts it and closes it; so does `echo '...' | quickstart`.

use steadfast::prelude::*;

struct Sums;

/// Arithmetic for models.
#[server]
impl Sums {
    /// Adds two numbers.
    #[tool]
    async fn add(&self, a: f64, b: f64) -> f64 {
        a + b
    }
}

#[tokio::main]
async fn main() -> Result<(), steadfast::Error> {
    Sums.serve_stdio().await
}
