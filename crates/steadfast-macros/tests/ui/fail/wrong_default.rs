use steadfast::tool;

#[tool]
async fn forecast(#[arg(default = "three")] days: u8) -> u8 {
    days
}

#[tool]
async fn search(#[arg(default)] unit: Unit) {
    drop(unit);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
enum Unit {
    Celsius,
}

fn main() {}
