use steadfast::tool;

#[tool]
async fn first(#[arg(default = Some(3))] days: Option<u8>) {
    drop(days);
}

#[tool]
async fn second(#[arg(default)] days: Option<u8>) {
    drop(days);
}

fn main() {}
