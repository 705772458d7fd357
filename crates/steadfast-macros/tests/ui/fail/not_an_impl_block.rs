use steadfast::{server, tool};

#[server]
struct Thing;

#[server]
impl Default for Thing {
    fn default() -> Self {
        Thing
    }
}

#[tool]
struct Other;

fn main() {}
