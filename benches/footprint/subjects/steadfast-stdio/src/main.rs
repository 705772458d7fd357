//! The smallest server over stdio, as the README writes it.

use steadfast::prelude::*;

struct Sums;

#[server]
impl Sums {
    /// Adds two integers
    #[tool]
    async fn add(
        &self,
        /// The first number.
        a: i64,
        /// The second number.
        b: i64,
    ) -> String {
        a.wrapping_add(b).to_string()
    }
}

#[tokio::main]
async fn main() -> Result<(), steadfast::Error> {
    Sums.serve_stdio().await
}
