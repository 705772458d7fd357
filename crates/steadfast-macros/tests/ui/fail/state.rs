use std::sync::Arc;
use steadfast::{server, tool};

struct Thing;

#[server]
impl Thing {
    #[tool]
    async fn wait(&self, #[state] words: Arc<Vec<String>>) -> usize {
        words.len()
    }
}

#[tool]
async fn count(#[state] words: &Vec<String>) -> usize {
    words.len()
}

#[tool]
async fn both(
    #[state]
    #[arg(default)]
    words: Arc<Vec<String>>,
) -> usize {
    words.len()
}

fn main() {}
