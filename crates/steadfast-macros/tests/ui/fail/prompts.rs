use steadfast::{prompt, server};

struct Place;

#[prompt]
async fn returns(_topic: String) -> u64 {
    7
}

#[prompt]
async fn takes(_place: Place) -> String {
    String::new()
}

#[prompt(read_only)]
async fn hinted() -> String {
    String::new()
}

#[prompt(name = "two words")]
async fn named() -> String {
    String::new()
}

#[prompt]
async fn completed(#[arg(complete)] city: String) -> String {
    city
}

#[prompt]
async fn completed_badly(#[arg(complete = 7)] city: String) -> String {
    city
}

#[prompt]
struct NotAFunction;

fn main() {}

mod methods {
    use super::*;

    struct Guide;

    #[server]
    impl Guide {
        #[prompt]
        async fn one(&self) -> String {
            String::new()
        }

        #[prompt(name = "one")]
        async fn other(&self) -> String {
            String::new()
        }

        #[prompt]
        async fn alone() -> String {
            String::new()
        }

        #[prompt]
        #[tool]
        async fn both(&self) -> String {
            String::new()
        }

        #[tool]
        async fn typed_by_nobody(&self, #[arg(complete = ["a"])] city: String) -> String {
            city
        }
    }
}
