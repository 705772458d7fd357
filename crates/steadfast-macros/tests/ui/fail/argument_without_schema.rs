use steadfast::tool;

#[derive(serde::Deserialize)]
struct Place {}

#[tool]
async fn forecast(place: Place) {
    drop(place);
}

fn main() {}
