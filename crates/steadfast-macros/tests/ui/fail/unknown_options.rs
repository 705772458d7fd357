use steadfast::{server, tool};

#[tool(readonly)]
async fn first() {}

#[tool(title)]
async fn second() {}

#[tool(read_only = "yes")]
async fn third() {}

#[tool(cancel = maybe)]
async fn fourth() {}

#[tool]
async fn fifth(#[arg(defualt = 3)] days: u8) -> u8 {
    days
}

#[tool]
async fn sixth(#[arg] days: u8) -> u8 {
    days
}

#[tool(name = "seventh", name = "eighth")]
async fn seventh() {}

#[tool(needs = feet)]
async fn ninth() {}

struct Thing;

#[server(nome = "thing")]
impl Thing {}

fn main() {}
