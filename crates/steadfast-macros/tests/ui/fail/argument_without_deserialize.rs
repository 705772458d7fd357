use steadfast::tool;

struct Place;

#[tool]
async fn forecast(place: Place) {
    drop(place);
}

fn main() {}
