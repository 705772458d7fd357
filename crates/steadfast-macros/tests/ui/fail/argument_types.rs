use steadfast::tool;

#[tool]
async fn text(text: &str) -> usize {
    text.len()
}

#[tool]
async fn slice(numbers: &[u8], other: &Vec<u8>) -> usize {
    numbers.len() + other.len()
}

#[tool]
async fn any(text: impl Into<String>) -> String {
    text.into()
}

fn main() {}
