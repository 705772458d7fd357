//! The command of the simulator.
use sim::explore::{self, Size};
fn main() {
    let only = std::env::args().nth(1);
    if only.as_deref() == Some("--seeds") {
        let n: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
        let t = std::time::Instant::now();
        let (mut r, mut m) = (0, 0);
        for seed in 0..n {
            let run = sim::pair::run(seed);
            r += run.requests; m += run.messages;
            if !run.violations.is_empty() { println!("{}", sim::pair::examine(seed, None).unwrap()); return; }
        }
        println!("{n} requests {r} messages {m} {:?}", t.elapsed());
        return;
    }
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
