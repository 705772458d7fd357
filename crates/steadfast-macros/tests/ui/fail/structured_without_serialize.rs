use steadfast::{Structured, tool};

struct Forecast;

#[tool]
async fn forecast() -> Structured<Forecast> {
    Structured(Forecast)
}

fn main() {}
