//! The command of the simulator.
use sim::explore::{self, Size};
fn main() {
    let only = std::env::args().nth(1);
    for name in explore::names() {
        if only.as_deref().is_some_and(|only| only != *name) { continue; }
        let size = if std::env::args().nth(2).is_some() { Size::Full } else { Size::Small };
        let t = std::time::Instant::now();
        match explore::explore(name, size) {
            Ok(totals) => println!("{name}: {totals} {:?}", t.elapsed()),
            Err(counterexample) => println!("{counterexample}"),
        }
    }
}
