use steadfast::tool;

#[tool]
async fn pair((a, b): (u8, u8)) -> u8 {
    a + b
}

#[tool]
async fn unnamed(_: u8) {}

fn main() {}
