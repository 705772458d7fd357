use steadfast::{resource, server};

struct Place;

#[resource]
async fn nowhere() -> String {
    String::new()
}

#[resource(name = "note")]
async fn named_only() -> String {
    String::new()
}

#[resource("/etc/hosts")]
async fn without_scheme() -> String {
    String::new()
}

#[resource("note://{name")]
async fn unclosed(name: String) -> String {
    name
}

#[resource("note://{name}")]
async fn unknown_variable(nome: String) -> String {
    nome
}

#[resource("note://{folder}/{name}{?page-size}")]
async fn missing_variables(name: String) -> String {
    name
}

#[resource("note://all")]
async fn fixed(name: String) -> String {
    name
}

#[resource("note://{folder}{?page.size}")]
async fn missing_odd_variable(folder: String) -> String {
    folder
}

#[resource("note://all", mime = "text/plain")]
async fn unknown_option() -> String {
    String::new()
}

#[resource("note://all" mime_type = "text/plain")]
async fn without_comma() -> String {
    String::new()
}

#[resource("note://{place}")]
async fn takes(_place: Place) -> String {
    String::new()
}

#[resource("note://all")]
async fn returns() -> Place {
    Place
}

fn main() {}

mod methods {
    use super::*;

    struct Notes;

    #[server]
    impl Notes {
        #[resource("note://{name}")]
        async fn one(&self, name: String) -> String {
            name
        }

        #[resource("note://{name}")]
        async fn other(&self, name: String) -> String {
            name
        }
    }
}
