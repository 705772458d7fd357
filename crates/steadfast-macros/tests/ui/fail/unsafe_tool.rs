use steadfast::tool;

#[tool]
unsafe fn poke(address: usize) -> usize {
    address
}

fn main() {}
