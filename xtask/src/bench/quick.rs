//! The check for CI: counts of steadfast against the budget, and context switches of requests one at a time.
//!
//! It compares nothing that depends on how busy the machine is, and never runs another implementation.

use super::bench_json::StdioRates;
use super::budget::{self, Budget, Comparison, Figures};
use super::full::{http_counts, stdio_counts};
use super::measurements::{CountedLoad, StdioRun};
use super::numbers::significant;
use super::runner::{Runner, words};
use super::{machine, marks};
use crate::failure::{Failure, Outcome};

/// More context switches of a request than this mean that it is handed from thread to thread.
const CONTEXT_SWITCHES: f64 = 1.5;

/// Compares with the budget, or writes it; false if a figure is over.
pub(crate) async fn run(update: bool) -> Outcome<bool> {
    let rustc = machine::rustc().await?;
    let file = Budget::file();
    let budget = if update { None } else { Some(Budget::read(&file)?) };
    let runner = Runner::with_steadfast(false).await?;
    let switches_kept = context_switches_kept(&runner).await?;
    let Some(budget) = budget else {
        let figures = count(&runner).await?;
        println!("{} figures are written to {}.", figures.len(), file.display());
        super::write(&file, &Budget { rustc, figures }.text()?)?;
        return Ok(switches_kept);
    };
    if let Some(sentence) = budget.other_compiler(&rustc) {
        println!("{sentence}");
        return Ok(switches_kept);
    }
    let comparisons = budget.compare(&count(&runner).await?);
    println!("{}", budget::table(&comparisons));
    let over = comparisons.iter().filter(|one| one.fails()).count();
    if over > 0 {
        println!("{over} of {} figures exceed the budget, or were not counted.", comparisons.len());
    }
    Ok(switches_kept && !comparisons.iter().any(Comparison::fails))
}

async fn count(runner: &Runner) -> Outcome<Figures> {
    let stdio: Vec<CountedLoad> = stdio_counts(runner, "steadfast").await?.into();
    let http: Vec<CountedLoad> = http_counts(runner, "steadfast").await?.into();
    let mut figures = budget::figures("stdio", &stdio);
    figures.extend(budget::figures("http", &http));
    if figures.is_empty() {
        return Err(Failure::new("the benches counted nothing for steadfast"));
    }
    Ok(figures)
}

/// Prints how many context switches a request on stdio takes, and whether that is few enough.
async fn context_switches_kept(runner: &Runner) -> Outcome<bool> {
    let line = words("--tools add --servers steadfast --rounds 5");
    let rates: StdioRates = runner.run("stdio", "stdio-switches", &line).await?;
    let run = StdioRun::from(rates);
    let serial = run.loads.iter().find(|load| load.load == marks::STDIO_SERIAL);
    let switches = serial.and_then(|load| load.context_switches("steadfast"));
    let switches = switches.ok_or_else(|| Failure::new("the stdio bench counted no context switches"))?;
    let kept = switches <= CONTEXT_SWITCHES;
    let verdict = if kept { "kept" } else { "OVER" };
    println!("Context switches of a serial request: {}, at most {CONTEXT_SWITCHES}: {verdict}.", significant(switches));
    Ok(kept)
}
