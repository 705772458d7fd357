use std::rc::Rc;
use steadfast::{server, tool};

#[tool]
async fn count(text: String) -> usize {
    let shared = Rc::new(text);
    std::future::ready(()).await;
    shared.len()
}

struct Thing {
    shared: Rc<String>,
}

#[server]
impl Thing {
    #[tool]
    async fn wait(&self) -> usize {
        self.shared.len()
    }
}

fn main() {}
